// swift-tools-version: 6.2
import PackageDescription

// The benchmarks. Scripts/bench builds them in release mode, with the traits that its scenarios need. Scripts/test compiles them
// with all traits.

/// Whether this is the build of Scripts/test, whose traits are defaults: see Examples/Package.swift.
let hasAllTraits = Context.environment["ETAGERE_ALL_TRAITS"] != nil

/// The traits of Etagere that the benchmarks use. Each one is a trait of this package, too.
let traits = ["Origin", "AsyncHTTP", "VIPS", "Metrics", "Redis", "Server"]

let etagereTraits: Set<Package.Dependency.Trait> =
  hasAllTraits ? [.defaults] : Set(traits.map { .trait(name: $0, condition: .when(traits: [$0])) })

/// The name that the compiler gets for the package Etagere. SwiftPM makes it from the name of the folder. (A folder named
/// "Performance" would have the name of this package, and SwiftPM would refuse both.)
let etagere = String(
  (Context.packageDirectory.split(separator: "/").dropLast(2).last ?? "").lowercased().enumerated().map { index, character in
    character.isLetter || character.isNumber && index > 0 ? character : "_"
  })

/// The benchmarks measure parts of Etagere that are not public: the parser and the writer of HTTPServing, a disk cache without
/// its threads, and recorded traces. With the same package name, the compiler makes its `package` symbols visible to them.
let settings: [SwiftSetting] = [
  .unsafeFlags(["-package-name", etagere]),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
]

/// Products of a package, with names separated by spaces. With a trait, SwiftPM clones the package only if the trait is enabled.
func products(_ names: String, of package: String = "Etagere", trait: String? = nil) -> [Target.Dependency] {
  names.split(separator: " ").map {
    .product(name: String($0), package: package, condition: trait.flatMap { .when(traits: [$0]) })
  }
}

let package = Package(
  name: "EtagereBenchmarks",
  platforms: [.macOS(.v15)],
  traits: Set(traits.map { .trait(name: $0) }).union(hasAllTraits ? [.default(enabledTraits: Set(traits))] : []),
  dependencies: [
    .package(name: "Etagere", path: "../..", traits: etagereTraits),
    .package(url: "https://github.com/apple/swift-http-types", from: "1.4.0"),
    .package(url: "https://github.com/apple/swift-nio", from: "2.81.0"),
    .package(url: "https://github.com/apple/swift-nio-extras", from: "1.34.0"),
    .package(url: "https://github.com/apple/swift-metrics", from: "2.9.0"),
    .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
  ],
  targets: [
    .target(name: "CAllocationCount", path: "CAllocationCount"),
    // ImageCodecs has the compiler's flags for the headers of libvips.
    .target(
      name: "CPlainVIPS", dependencies: products("ImageCodecs", trait: "VIPS"), path: "CPlainVIPS",
      cSettings: [.define("ETAGERE_VIPS", .when(platforms: [.linux], traits: ["VIPS"]))],
      linkerSettings: [.linkedLibrary("vips", .when(platforms: [.linux], traits: ["VIPS"]))]),
    .executableTarget(
      name: "Benchmarks",
      dependencies: ["CAllocationCount", "CPlainVIPS"]
        + products("CacheCore CacheManager MemoryStore DiskStore RedisStore StoreComposition ETagValidation ImageCodecs CacheUI")
        + products("CacheNetworking AsyncHTTPNetworking CacheTransport HTTPServing CacheTelemetry CacheTesting LoopbackOrigin")
        + products("HTTPTypes", of: "swift-http-types")
        + products("Metrics", of: "swift-metrics", trait: "Metrics")
        + products("AsyncHTTPClient", of: "async-http-client", trait: "AsyncHTTP")
        + products("NIOCore NIOHTTP1", of: "swift-nio", trait: "AsyncHTTP")
        + products("NIOEmbedded", of: "swift-nio", trait: "Server")
        + products("NIOHTTPTypes NIOHTTPTypesHTTP1", of: "swift-nio-extras", trait: "Server"),
      path: "Benchmarks", packageAccess: false, swiftSettings: settings),
  ],
  swiftLanguageModes: [.v6]
)
