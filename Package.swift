// swift-tools-version: 6.2
import PackageDescription

/// Every target is built in the strictest mode that the language offers.
let strict: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
]

let httpTypes: Target.Dependency = .product(name: "HTTPTypes", package: "swift-http-types")

/// The privacy manifest is a resource on Apple platforms only: elsewhere a resource bundle would pull all of Foundation in.
#if os(macOS)
let privacyManifest: [Resource] = [.copy("PrivacyInfo.xcprivacy")]
let withoutPrivacyManifest: [String] = []
#else
let privacyManifest: [Resource] = []
let withoutPrivacyManifest: [String] = ["PrivacyInfo.xcprivacy"]
#endif

/// A room of the house: folder, target and product share one name.
func module(
  _ name: String, _ dependencies: [Target.Dependency] = [], exclude: [String] = [], resources: [Resource] = []
) -> Target {
  .target(
    name: name, dependencies: dependencies, path: "Modules/\(name)", exclude: exclude,
    resources: resources.isEmpty ? nil : resources, swiftSettings: strict)
}

func tests(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
  .testTarget(name: name, dependencies: dependencies, path: "Tests/\(name)", swiftSettings: strict)
}

func example(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
  .executableTarget(name: name, dependencies: dependencies, path: "Examples/\(name)", swiftSettings: strict)
}

func nio(_ product: String) -> Target.Dependency {
  .product(name: product, package: "swift-nio", condition: .when(traits: ["Origin"]))
}

let package = Package(
  name: "Etagere",
  platforms: [.iOS(.v18), .macOS(.v15), .tvOS(.v18), .watchOS(.v11), .visionOS(.v2)],
  products: [
    .library(name: "CacheCore", targets: ["CacheCore"]),
    .library(name: "MemoryStore", targets: ["MemoryStore"]),
    .library(name: "DiskStore", targets: ["DiskStore"]),
    .library(name: "CacheNetworking", targets: ["CacheNetworking"]),
    .library(name: "CacheTransport", targets: ["CacheTransport"]),
    .library(name: "ETagValidation", targets: ["ETagValidation"]),
    .library(name: "CacheManager", targets: ["CacheManager"]),
    .library(name: "CacheTesting", targets: ["CacheTesting"]),
    .library(name: "Etagere", targets: ["Etagere"]),
    .library(name: "LoopbackOrigin", targets: ["LoopbackOrigin"]),
    .executable(name: "etagere", targets: ["EtagereTool"]),
  ],
  traits: [
    .trait(name: "Origin", description: "LoopbackOrigin, a programmable HTTP origin for tests (SwiftNIO)"),
    .trait(
      name: "Tool", description: "etagere, the command-line tool (swift-argument-parser)", enabledTraits: ["Origin"]),
  ],
  dependencies: [
    .package(url: "https://github.com/apple/swift-http-types", from: "1.4.0"),
    .package(url: "https://github.com/apple/swift-nio", from: "2.81.0"),
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.5.0"),
  ],
  targets: [
    module("CacheCore", [httpTypes]),
    module("MemoryStore", ["CacheCore"]),
    .target(name: "CChecksum", path: "Modules/CChecksum"),
    module(
      "DiskStore", ["CacheCore", "CChecksum", httpTypes], exclude: withoutPrivacyManifest, resources: privacyManifest),
    module("CacheNetworking", ["CacheCore", httpTypes]),
    module("CacheTransport", ["CacheCore", httpTypes]),
    module("ETagValidation", ["CacheCore", httpTypes]),
    module("CacheManager", ["CacheCore", httpTypes]),
    module("CacheTesting", ["CacheCore", httpTypes]),
    module(
      "Etagere",
      [
        "CacheCore", "MemoryStore", "DiskStore", "CacheNetworking", "CacheTransport", "ETagValidation", "CacheManager",
        httpTypes,
      ]),
    module(
      "LoopbackOrigin",
      ["CacheCore", "CacheTesting", httpTypes, nio("NIOCore"), nio("NIOPosix"), nio("NIOHTTP1")]),
    .executableTarget(
      name: "EtagereTool",
      dependencies: [
        "Etagere", "LoopbackOrigin", httpTypes,
        .product(
          name: "ArgumentParser", package: "swift-argument-parser", condition: .when(traits: ["Tool"])),
      ],
      path: "Modules/EtagereTool", swiftSettings: strict),

    example("MemoryAlone", ["MemoryStore", "CacheCore"]),
    example("OwnBackend", ["Etagere", "CacheTesting", httpTypes]),
    example("FolderAsNetwork", ["Etagere", "CacheTesting"]),

    // In no declared product: a client never clones for it.
    .executableTarget(
      name: "Benchmarks",
      dependencies: [
        "CacheCore", "CacheManager", "CacheNetworking", "CacheTesting", "CacheTransport", "DiskStore", "ETagValidation",
        "LoopbackOrigin", "MemoryStore", httpTypes,
      ],
      path: "Tests/Benchmarks", swiftSettings: strict),

    tests("CacheCoreTests", ["CacheCore", httpTypes]),
    tests("MemoryStoreTests", ["MemoryStore", "CacheTesting"]),
    tests("DiskStoreTests", ["DiskStore", "CChecksum", "CacheTesting", httpTypes]),
    tests("CacheNetworkingTests", ["CacheNetworking", "CacheTesting", "LoopbackOrigin", httpTypes]),
    tests("CacheTransportTests", ["CacheTransport", "CacheTesting", httpTypes]),
    tests("ETagValidationTests", ["ETagValidation", "CacheTesting", httpTypes]),
    tests(
      "CacheManagerTests",
      ["CacheManager", "CacheTesting", "MemoryStore", "DiskStore", "ETagValidation", "CacheTransport", httpTypes]),
    tests("CacheTestingTests", ["CacheTesting", httpTypes]),
    tests("LoopbackOriginTests", ["LoopbackOrigin", "CacheTesting", httpTypes]),
    tests("EtagereTests", ["Etagere", "CacheTesting", "LoopbackOrigin", httpTypes]),
    .target(name: "KingfisherNames", path: "Tests/KingfisherNames", swiftSettings: strict),
    tests("CoexistenceTests", ["Etagere", "KingfisherNames"]),
    tests("EtagereToolTests", ["Etagere", "CacheTesting", "LoopbackOrigin", "EtagereTool"]),
  ],
  swiftLanguageModes: [.v6]
)
