// swift-tools-version: 6.2
import PackageDescription

/// The upcoming language features that all targets enable.
let strict: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
]

#if os(macOS)
/// The privacy manifest is a resource only on Apple platforms. On other platforms a resource bundle would link all of Foundation.
let privacyManifest: [Resource]? = [.copy("PrivacyInfo.xcprivacy")]
let withoutPrivacyManifest: [String] = []
/// The traits of the tool. Apple platforms have their own URLSession. Elsewhere it ends the process on some valid responses.
let toolTraits: Set<String> = ["Demo"]
/// The name of zlib's pkg-config file. Apple's SDKs contain zlib without one, and SwiftPM would warn that it is missing.
let zlibConfiguration: String? = nil
#else
let privacyManifest: [Resource]? = nil
let withoutPrivacyManifest = ["PrivacyInfo.xcprivacy"]
let toolTraits: Set<String> = ["Demo", "AsyncHTTP"]
let zlibConfiguration: String? = "zlib"
#endif

/// Targets of this package and the product HTTPTypes, with names separated by spaces. A build without the trait compiles none.
func targets(_ names: String, trait: String? = nil) -> [Target.Dependency] {
  names.split(separator: " ").map {
    $0 == "HTTPTypes"
      ? .product(name: "HTTPTypes", package: "swift-http-types")
      : .target(name: String($0), condition: trait.flatMap { .when(traits: [$0]) })
  }
}

/// Products, with names separated by spaces, of a package that SwiftPM clones only if the trait is enabled.
func products(_ names: String, of package: String, trait: String) -> [Target.Dependency] {
  names.split(separator: " ").map { .product(name: String($0), package: package, condition: .when(traits: [trait])) }
}

/// A module whose folder, target and product have the same name.
///
/// - Parameter readsFileStatus: Whether it reads the status of files, which Apple's privacy manifest must declare.
func module(
  _ group: String, _ name: String, _ names: String, _ others: [Target.Dependency] = [], readsFileStatus: Bool = false
) -> Target {
  .target(
    name: name, dependencies: targets(names) + others, path: "Modules/\(group)/\(name)",
    exclude: readsFileStatus ? withoutPrivacyManifest : [], resources: readsFileStatus ? privacyManifest : nil,
    swiftSettings: strict)
}

func tests(_ group: String, _ name: String, _ names: String, _ others: [Target.Dependency] = []) -> Target {
  .testTarget(name: name, dependencies: targets(names) + others, path: "Tests/\(group)/\(name)", swiftSettings: strict)
}

func program(
  _ path: String, _ name: String, _ names: String, _ others: [Target.Dependency] = [], packageAccess: Bool = true
) -> Target {
  .executableTarget(
    name: name, dependencies: targets(names) + others, path: path, packageAccess: packageAccess, swiftSettings: strict)
}

/// A library for tests. No product contains it, so clients do not clone its dependencies.
func support(_ path: String, _ name: String, _ names: String = "") -> Target {
  .target(name: name, dependencies: targets(names), path: "Tests/\(path)", swiftSettings: strict)
}

/// libvips, which decodes images on Linux. Apple platforms use ImageIO.
let vips: Target.Dependency = .target(name: "CEtagereVIPS", condition: .when(platforms: [.linux]))
let withVIPS: TargetDependencyCondition? = .when(platforms: [.linux], traits: ["VIPS"])

/// OpenCombine, for platforms without Combine.
let openCombine: Target.Dependency = .product(
  name: "OpenCombine", package: "OpenCombine",
  condition: .when(platforms: [.linux, .android, .windows, .wasi], traits: ["OpenCombine"]))

let zlib: Target.Dependency = .target(name: "CEtagereZlib", condition: .when(traits: ["ContentDecoding"]))

/// The default traits: none. Scripts/test sets the variable for the builds of the examples and the benchmarks.
let defaultTraits: Set<Trait> =
  Context.environment["ETAGERE_ALL_TRAITS"] == nil ? [] : [.default(enabledTraits: ["All"])]

let libraries = [
  "CacheCore", "MemoryStore", "DiskStore", "SQLiteStore", "RedisStore", "StoreComposition", "CacheNetworking",
  "AsyncHTTPNetworking", "CacheTransport", "HTTPServing", "ETagValidation", "ImageCodecs", "ImageWorkers", "CacheManager",
  "ImageService", "HummingbirdImages", "CacheTesting", "Etagere", "CacheUI", "CacheTelemetry", "CacheCombine", "LoopbackOrigin",
]

let package = Package(
  name: "Etagere",
  platforms: [.iOS(.v18), .macOS(.v15), .tvOS(.v18), .watchOS(.v11), .visionOS(.v2)],
  products: libraries.map { .library(name: $0, targets: [$0]) } + [.executable(name: "etagere-cli", targets: ["EtagereTool"])],
  traits: defaultTraits.union([
    .trait(name: "Origin", description: "LoopbackOrigin, a programmable HTTP origin for tests (SwiftNIO)"),
    .trait(name: "ContentDecoding", description: "CacheTransport undoes gzip and deflate itself (the system's zlib)"),
    .trait(
      name: "AsyncHTTP", description: "AsyncHTTPNetworking, the engine for servers (async-http-client)",
      enabledTraits: ["ContentDecoding"]),
    .trait(name: "Server", description: "HTTPServing, the connections of an HTTP server (HummingbirdCore)"),
    .trait(name: "SQLite", description: "SQLiteStore, a store in one database (GRDB, the system's SQLite)"),
    .trait(name: "Redis", description: "RedisStore, a store on Redis or Valkey (SwiftNIO)"),
    .trait(name: "Logging", description: "CacheTelemetry writes a log (swift-log)"),
    .trait(name: "Metrics", description: "CacheTelemetry counts and measures (swift-metrics)"),
    .trait(name: "Tracing", description: "CacheTelemetry makes spans (swift-distributed-tracing)"),
    .trait(name: "OpenCombine", description: "CacheCombine has publishers where there is no Combine (OpenCombine)"),
    .trait(name: "VIPS", description: "ImageCodecs has an engine on Linux (the system's libvips)"),
    .trait(name: "Demo", description: "etagere-cli demo alone (swift-argument-parser, SwiftNIO)", enabledTraits: ["Origin"]),
    .trait(
      name: "Tool", description: "etagere-cli, the command-line tool (swift-argument-parser; on Linux with AsyncHTTP)",
      enabledTraits: toolTraits),
    .trait(
      name: "Service",
      description: "ImageService, its Hummingbird routes, and etagere-cli serve (Hummingbird, swift-crypto, swift-configuration)",
      enabledTraits: ["Tool", "AsyncHTTP", "Server", "VIPS", "Metrics"]),
    .trait(
      name: "All", description: "All other traits, for the tests of this package",
      enabledTraits: [
        "Origin", "ContentDecoding", "AsyncHTTP", "Server", "SQLite", "Redis", "Logging", "Metrics", "Tracing", "OpenCombine",
        "VIPS", "Demo", "Tool", "Service",
      ]),
  ]),
  // The modules have been compiled with these versions, or with the oldest that the dependencies of a trait permit, and with
  // swift-crypto 4.5.2. The tests need later ones. NIOHPACK is a product from swift-nio-http2 1.41 on, and a key is Sendable from
  // swift-crypto 4.0 on.
  dependencies: [
    .package(url: "https://github.com/apple/swift-http-types", from: "1.4.0"),
    .package(url: "https://github.com/apple/swift-nio", from: "2.81.0"),
    .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.30.0"),
    .package(url: "https://github.com/apple/swift-nio-http2", from: "1.41.0"),
    .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.8.0"),
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.6.0"),
    .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
    .package(url: "https://github.com/OpenCombine/OpenCombine", from: "0.14.0"),
    .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1", traits: []),
    .package(url: "https://github.com/apple/swift-log", from: "1.7.0"),
    .package(url: "https://github.com/apple/swift-metrics", from: "2.7.0"),
    .package(url: "https://github.com/apple/swift-distributed-tracing", from: "1.3.0"),
    .package(url: "https://github.com/apple/swift-crypto", from: "4.0.0"),
    .package(url: "https://github.com/apple/swift-configuration", from: "1.0.2", traits: ["JSON"]),
  ],
  targets: [
    .target(name: "CEtagereChecksum", path: "Modules/System/CEtagereChecksum"),
    .target(name: "CEtagereConfinement", path: "Modules/System/CEtagereConfinement"),
    .systemLibrary(
      name: "CEtagereZlib", path: "Modules/System/CEtagereZlib", pkgConfig: zlibConfiguration,
      providers: [.apt(["zlib1g-dev"])]),
    // The pkg-config file of GObject contains all flags that the headers of libvips need. The file of libvips also contains flags
    // of its codecs, which cause warnings in SwiftPM.
    .systemLibrary(
      name: "CEtagereLibVIPS", path: "Modules/System/CEtagereLibVIPS", pkgConfig: "gobject-2.0",
      providers: [.apt(["libvips-dev"]), .yum(["vips-devel"])]),
    .target(
      name: "CEtagereVIPS", dependencies: [.target(name: "CEtagereLibVIPS", condition: withVIPS)],
      path: "Modules/System/CEtagereVIPS",
      cSettings: [.define("ETAGERE_VIPS", .when(platforms: [.linux], traits: ["VIPS"]))],
      linkerSettings: [.linkedLibrary("vips", .when(platforms: [.linux], traits: ["VIPS"]))]),

    module("Core", "CacheCore", "CEtagereChecksum HTTPTypes", readsFileStatus: true),
    module("Core", "ETagValidation", "CacheCore HTTPTypes"),
    module("Core", "CacheManager", "CacheCore HTTPTypes", readsFileStatus: true),
    module(
      "Core", "Etagere",
      "CacheCore MemoryStore DiskStore CacheNetworking CacheTransport ETagValidation CacheManager ImageCodecs HTTPTypes"),

    module("Stores", "MemoryStore", "CacheCore"),
    module("Stores", "DiskStore", "CacheCore CEtagereChecksum HTTPTypes", readsFileStatus: true),
    module(
      "Stores", "SQLiteStore", "CacheCore HTTPTypes", products("GRDB", of: "GRDB.swift", trait: "SQLite"), readsFileStatus: true),
    module(
      "Stores", "RedisStore", "CacheCore HTTPTypes",
      products("NIOCore NIOPosix", of: "swift-nio", trait: "Redis") + products("NIOSSL", of: "swift-nio-ssl", trait: "Redis")),
    module("Stores", "StoreComposition", "CacheCore HTTPTypes", readsFileStatus: true),

    module("Networking", "CacheNetworking", "CacheCore HTTPTypes"),
    module("Networking", "CacheTransport", "CacheCore HTTPTypes", [zlib], readsFileStatus: true),
    module(
      "Networking", "AsyncHTTPNetworking", "CacheCore HTTPTypes",
      products("AsyncHTTPClient", of: "async-http-client", trait: "AsyncHTTP")
        + products("ServiceLifecycle", of: "swift-service-lifecycle", trait: "AsyncHTTP")
        + products("NIOCore NIOPosix NIOHTTP1", of: "swift-nio", trait: "AsyncHTTP")
        + products("NIOHPACK NIOHTTP2", of: "swift-nio-http2", trait: "AsyncHTTP")
        + products("NIOSSL", of: "swift-nio-ssl", trait: "AsyncHTTP")),
    module(
      "Networking", "HTTPServing", "CacheCore HTTPTypes",
      products("HummingbirdCore", of: "hummingbird", trait: "Server") + products("Logging", of: "swift-log", trait: "Server")
        + products("NIOCore NIOPosix NIOHTTP1", of: "swift-nio", trait: "Server")
        + products("ServiceLifecycle", of: "swift-service-lifecycle", trait: "Server")),

    module("Images", "ImageCodecs", "CacheCore", [vips]),
    module("Images", "ImageWorkers", "CacheCore ImageCodecs CEtagereConfinement"),
    module(
      "Images", "ImageService", "CacheCore CacheManager CacheTransport ETagValidation ImageCodecs ImageWorkers HTTPTypes",
      products("Crypto", of: "swift-crypto", trait: "Service")),
    module("Images", "HummingbirdImages", "ImageService HTTPTypes", products("Hummingbird", of: "hummingbird", trait: "Service")),

    module("Interfaces", "CacheUI", "Etagere HTTPTypes"),
    module("Interfaces", "CacheCombine", "CacheManager CacheCore", [openCombine]),
    module(
      "Interfaces", "CacheTelemetry", "CacheCore",
      products("Logging", of: "swift-log", trait: "Logging") + products("Metrics", of: "swift-metrics", trait: "Metrics")
        + products("Tracing", of: "swift-distributed-tracing", trait: "Tracing")),

    module("Testing", "CacheTesting", "CacheCore HTTPTypes"),
    module(
      "Testing", "LoopbackOrigin", "CacheCore CacheTesting HTTPTypes",
      products("NIOCore NIOPosix NIOHTTP1", of: "swift-nio", trait: "Origin")),

    // No product contains this target: it is the input and output of etagere-cli.
    module("Tool", "CommandIO", "CacheCore"),
    program(
      "Modules/Tool/EtagereTool", "EtagereTool",
      "Etagere CacheTelemetry CommandIO AsyncHTTPNetworking LoopbackOrigin HTTPTypes",
      targets("ImageService HTTPServing RedisStore StoreComposition", trait: "Service")
        + products("ArgumentParser", of: "swift-argument-parser", trait: "Demo")
        + products("Configuration", of: "swift-configuration", trait: "Service")
        + products("Logging", of: "swift-log", trait: "Service") + products("Metrics", of: "swift-metrics", trait: "Service")
        + products("NIOCore", of: "swift-nio", trait: "Service")
        + products("ServiceLifecycle UnixSignals", of: "swift-service-lifecycle", trait: "Service")),

    program(
      "Tests/Trials/Faults", "Faults",
      "CacheCore CacheManager CacheTesting CacheTransport DiskStore ETagValidation LocalRedis LoopbackOrigin MemoryStore RedisStore SQLiteStore StoreComposition HTTPTypes",
      targets("AsyncHTTPNetworking HTTPServing ImageCodecs ImageFiles ImageService", trait: "Service")
        + products("Logging", of: "swift-log", trait: "Service") + products("NIOCore", of: "swift-nio", trait: "Service")
        + products("ServiceLifecycle UnixSignals", of: "swift-service-lifecycle", trait: "Service")),
    program("Tests/Trials/Simulation", "Simulation", "CacheCore CacheTesting MemoryStore"),
    // Tests/Trials/Comparison is a package, too: on a Mac it adds the peers, which this one must not name.
    program("Tests/Trials/Comparison/Sources", "Comparison", "Etagere LoopbackOrigin HTTPTypes", packageAccess: false),
    support("Support/AppleNames", "AppleNames"),
    // Tests/Support/Browser is a package, too, for the tests of an example.
    support("Support/Browser/Sources/Browser", "Browser", "AsyncHTTPNetworking CacheCore HTTPTypes"),
    support("Support/GoldenEntries", "GoldenEntries", "CacheCore CacheTesting HTTPTypes"),
    support("Support/ImageFiles", "ImageFiles", "CacheCore ImageCodecs"),
    support("Support/KingfisherNames", "KingfisherNames"),
    program("Tests/Support/TrialWorker", "TrialWorker", "CacheCore ImageWorkers"),
    support("Support/LocalRedis", "LocalRedis", "CacheCore CacheTesting LoopbackOrigin"),

    tests("Core", "CacheCoreTests", "CacheCore HTTPTypes"),
    tests(
      "Core", "CacheManagerTests",
      "CacheManager CacheTesting MemoryStore DiskStore SQLiteStore RedisStore StoreComposition LocalRedis ETagValidation CacheTransport HTTPTypes"
    ),
    tests(
      "Core", "CoexistenceTests",
      "Etagere KingfisherNames AppleNames AsyncHTTPNetworking SQLiteStore StoreComposition CacheTesting LoopbackOrigin"),
    tests("Core", "ETagValidationTests", "ETagValidation CacheTesting HTTPTypes"),
    tests("Core", "EtagereTests", "Etagere AsyncHTTPNetworking CacheTesting LoopbackOrigin HTTPTypes"),
    tests("Stores", "MemoryStoreTests", "MemoryStore CacheTesting"),
    tests("Stores", "DiskStoreTests", "DiskStore CEtagereChecksum GoldenEntries CacheTesting HTTPTypes"),
    tests(
      "Stores", "SQLiteStoreTests", "SQLiteStore GoldenEntries CacheTesting HTTPTypes",
      products("GRDB", of: "GRDB.swift", trait: "SQLite")),
    tests(
      "Stores", "RedisStoreTests",
      "RedisStore StoreComposition CacheManager ETagValidation GoldenEntries CacheTesting LocalRedis LoopbackOrigin HTTPTypes"),
    tests("Stores", "StoreCompositionTests", "StoreComposition CacheTesting DiskStore HTTPTypes"),
    tests("Networking", "CacheNetworkingTests", "CacheNetworking CacheTesting LoopbackOrigin HTTPTypes"),
    tests(
      "Networking", "AsyncHTTPNetworkingTests", "AsyncHTTPNetworking CacheTesting LoopbackOrigin HTTPTypes",
      products("AsyncHTTPClient", of: "async-http-client", trait: "AsyncHTTP")
        + products("ServiceLifecycle ServiceLifecycleTestKit", of: "swift-service-lifecycle", trait: "AsyncHTTP")
        + products("NIOCore NIOPosix NIOEmbedded NIOHTTP1", of: "swift-nio", trait: "AsyncHTTP")
        + products("NIOSSL", of: "swift-nio-ssl", trait: "AsyncHTTP")),
    tests(
      "Networking", "CacheTransportTests",
      "CacheTransport CacheTesting CacheManager CacheNetworking ETagValidation MemoryStore LoopbackOrigin HTTPTypes", [zlib]),
    tests(
      "Networking", "HTTPServingTests", "HTTPServing CacheCore CacheTesting HTTPTypes",
      products("NIOCore NIOPosix NIOEmbedded NIOHTTP1", of: "swift-nio", trait: "Server")),
    tests("Images", "ImageCodecsTests", "ImageCodecs ImageFiles CacheTesting HTTPTypes"),
    tests("Images", "ImageWorkersTests", "ImageWorkers ImageCodecs TrialWorker CacheTesting HTTPTypes"),
    tests(
      "Images", "ImageServiceTests",
      "ImageService ImageWorkers TrialWorker HummingbirdImages MemoryStore DiskStore CacheTesting HTTPTypes",
      products("Hummingbird HummingbirdTesting", of: "hummingbird", trait: "Service")),
    tests("Interfaces", "CacheUITests", "CacheUI CacheCore CacheTesting HTTPTypes"),
    tests(
      "Interfaces", "CacheTelemetryTests", "CacheTelemetry CacheManager MemoryStore ETagValidation CacheTesting HTTPTypes",
      products("Logging InMemoryLogging", of: "swift-log", trait: "Logging")
        + products("Metrics MetricsTestKit", of: "swift-metrics", trait: "Metrics")
        + products("Tracing InMemoryTracing", of: "swift-distributed-tracing", trait: "Tracing")),
    tests("Interfaces", "CacheCombineTests", "CacheCombine CacheCore CacheTesting ETagValidation MemoryStore HTTPTypes"),
    tests("Testing", "CacheTestingTests", "CacheTesting HTTPTypes"),
    tests("Testing", "LoopbackOriginTests", "LoopbackOrigin CacheTesting HTTPTypes"),
    tests("Tool", "CommandIOTests", "CommandIO CacheCore CacheTesting"),
    tests(
      "Tool", "EtagereToolTests",
      "Etagere CacheTelemetry CacheTesting LoopbackOrigin EtagereTool Browser AsyncHTTPNetworking HTTPServing ImageService HTTPTypes",
      products("ArgumentParser", of: "swift-argument-parser", trait: "Demo")
        + products("Configuration", of: "swift-configuration", trait: "Service")
        + products("CoreMetrics", of: "swift-metrics", trait: "Service")
        + products("NIOCore NIOPosix", of: "swift-nio", trait: "Service")),
    tests("Support", "BrowserTests", "Browser LoopbackOrigin HTTPTypes"),
    tests("Trials", "SimulationTests", "Simulation CacheTesting"),
  ],
  swiftLanguageModes: [.v6]
)
