// swift-tools-version: 6.2
import PackageDescription

// All examples in one package, which Scripts/test builds and tests at once. The manifest to copy is the one in the folder of an
// example: it states what that example needs.

/// All traits of Etagere. SwiftPM passes traits to the compiler in the order in which it finds them. Scripts/test sets the
/// variable, so that they are defaults. They then have the same order as in the build of the package, and no module is compiled
/// again.
let allTraits: Set<Package.Dependency.Trait> =
  Context.environment["ETAGERE_ALL_TRAITS"] == nil ? ["All"] : [.defaults]

/// The upcoming language features of most examples.
let features: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
]

/// The features of the example HummingbirdCache. With NonisolatedNonsendingByDefault, a middleware would need `@concurrent`.
let serverFeatures: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"), .enableUpcomingFeature("MemberImportVisibility"),
]

/// Products of a package, whose names are separated by spaces.
func products(_ names: String, of package: String = "Etagere") -> [Target.Dependency] {
  names.split(separator: " ").map { .product(name: String($0), package: package) }
}

/// The program of an example.
func program(
  _ name: String, _ dependencies: [Target.Dependency], resources: [Resource]? = nil, _ settings: [SwiftSetting] = []
) -> Target {
  .executableTarget(
    name: name, dependencies: dependencies, path: "\(name)/Sources/\(name)", resources: resources, packageAccess: false,
    swiftSettings: settings)
}

/// The tests of an example.
func tests(
  _ name: String, _ dependencies: [Target.Dependency], exclude: [String] = [], _ settings: [SwiftSetting] = []
) -> Target {
  .testTarget(
    name: "\(name)Tests", dependencies: [.target(name: name)] + dependencies, path: "\(name)/Tests/\(name)Tests",
    exclude: exclude, packageAccess: false, swiftSettings: settings)
}

let argumentParser = products("ArgumentParser", of: "swift-argument-parser")
let httpTypes = products("HTTPTypes", of: "swift-http-types")
let hummingbird = products("Hummingbird", of: "hummingbird")
let logging = products("Logging", of: "swift-log")
let nio = products("NIOCore NIOPosix", of: "swift-nio")
let lifecycle = products("ServiceLifecycle", of: "swift-service-lifecycle")
let signals = products("UnixSignals", of: "swift-service-lifecycle")

/// The dependencies of the programs that run the gateway's server, and of their tests.
let server = products("HTTPServing CacheCore") + argumentParser + logging + nio + lifecycle + ["GatewayServer"]

let package = Package(
  name: "EtagereExamples",
  platforms: [.macOS(.v15)],
  dependencies: [
    .package(name: "Etagere", path: "..", traits: allTraits),
    .package(path: "../Tests/Support/Browser"),
    .package(url: "https://github.com/apple/swift-http-types", from: "1.4.0"),
    .package(url: "https://github.com/apple/swift-nio", from: "2.81.0"),
    .package(url: "https://github.com/apple/swift-log", from: "1.14.0"),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.6.0"),
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.5.0"),
    .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1", traits: []),
  ],
  targets: [
    program("MemoryAlone", products("MemoryStore CacheCore")),
    program("FolderAsNetwork", products("Etagere CacheTesting")),
    program("SessionClient", products("CacheNetworking") + httpTypes),

    program("OwnBackend", products("Etagere CacheTesting")),
    tests("OwnBackend", products("CacheTesting")),

    program("JSONClient", products("Etagere CacheCore CacheTesting")),
    tests("JSONClient", products("Etagere CacheTesting"), exclude: ["Fixtures"]),

    program("PhotoList", products("CacheUI CacheCore LoopbackOrigin") + httpTypes, features),
    tests("PhotoList", products("CacheUI CacheTesting"), features),

    program("PhotoWidget", products("CacheUI CacheTesting"), features),
    tests("PhotoWidget", products("CacheUI CacheTesting"), features),

    program("Thumbnails", products("Etagere AsyncHTTPNetworking") + argumentParser, features),
    tests("Thumbnails", products("Etagere CacheCore CacheTesting") + argumentParser, features),

    program(
      "HummingbirdCache",
      products("CacheCore CacheManager MemoryStore ETagValidation AsyncHTTPNetworking LoopbackOrigin") + httpTypes
        + hummingbird + lifecycle, serverFeatures),
    tests(
      "HummingbirdCache",
      products("CacheTesting") + httpTypes + hummingbird + products("HummingbirdTesting", of: "hummingbird")
        + products("NIOCore", of: "swift-nio"), serverFeatures),

    .target(
      name: "GatewayServer",
      dependencies: products("CacheCore CacheManager MemoryStore DiskStore ETagValidation AsyncHTTPNetworking HTTPServing")
        + httpTypes + logging + products("NIOConcurrencyHelpers NIOCore", of: "swift-nio") + lifecycle,
      path: "Gateway/Sources/GatewayServer", packageAccess: false, swiftSettings: features),
    program("Gateway", products("ETagValidation") + server + signals, features),
    tests(
      "Gateway",
      products("ETagValidation CacheTesting LoopbackOrigin") + httpTypes + server
        + products("NIOConcurrencyHelpers", of: "swift-nio"), features),

    program(
      "Gallery", products("CacheManager LoopbackOrigin") + httpTypes + server + signals,
      resources: [
        .embedInCode("Page/gallery.html"), .embedInCode("Page/gallery.css"), .embedInCode("Page/gallery.js"),
      ], features),
    tests(
      "Gallery",
      products("AsyncHTTPNetworking CacheTesting LoopbackOrigin") + httpTypes + server
        + products("ExampleBrowser", of: "Browser"), features),

    .testTarget(
      name: "ExamplesTests",
      dependencies: ["FolderAsNetwork", "JSONClient", "MemoryAlone", "OwnBackend", "PhotoWidget", "SessionClient"],
      path: "Tests/ExamplesTests", packageAccess: false),
  ],
  swiftLanguageModes: [.v6]
)
