// swift-tools-version: 6.2
import PackageDescription

/// The upcoming language features that all targets enable.
let strict: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
]

let httpTypes: Target.Dependency = .product(name: "HTTPTypes", package: "swift-http-types")

/// The privacy manifest is a resource only on Apple platforms. On other platforms a resource bundle would link all of Foundation.
#if os(macOS)
let privacyManifest: [Resource] = [.copy("PrivacyInfo.xcprivacy")]
let withoutPrivacyManifest: [String] = []
#else
let privacyManifest: [Resource] = []
let withoutPrivacyManifest: [String] = ["PrivacyInfo.xcprivacy"]
#endif

/// A module whose folder, target and product have the same name.
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

/// An example that can use only the public API.
func example(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
  .executableTarget(
    name: name, dependencies: dependencies, path: "Examples/\(name)", packageAccess: false, swiftSettings: strict)
}

/// A product of a package that SwiftPM clones only if the trait is enabled.
func product(_ name: String, of package: String, trait: String) -> Target.Dependency {
  .product(name: name, package: package, condition: .when(traits: [trait]))
}

/// The traits of the tool. Apple platforms have their own URLSession. Elsewhere it ends the process on some valid responses.
#if os(macOS)
let toolTraits: Set<String> = ["Origin"]
#else
let toolTraits: Set<String> = ["Origin", "AsyncHTTP"]
#endif

/// libvips, which decodes images on Linux. Apple platforms use ImageIO.
let vips: Target.Dependency = .target(name: "CVIPS", condition: .when(platforms: [.linux]))

/// OpenCombine, for platforms without Combine.
let openCombine: Target.Dependency = .product(
  name: "OpenCombine", package: "OpenCombine",
  condition: .when(platforms: [.linux, .android, .windows, .wasi], traits: ["OpenCombine"]))

let zlib: Target.Dependency = .target(name: "CZlib", condition: .when(traits: ["ContentDecoding"]))

/// The dependencies of the programs that run the gateway's server.
let gatewayCommand: [Target.Dependency] = [
  product("Logging", of: "swift-log", trait: "Gateway"),
  product("NIOCore", of: "swift-nio", trait: "Gateway"),
  product("NIOPosix", of: "swift-nio", trait: "Gateway"),
  product("ServiceLifecycle", of: "swift-service-lifecycle", trait: "Gateway"),
  product("UnixSignals", of: "swift-service-lifecycle", trait: "Gateway"),
  product("ArgumentParser", of: "swift-argument-parser", trait: "Gateway"),
]

let package = Package(
  name: "Etagere",
  platforms: [.iOS(.v18), .macOS(.v15), .tvOS(.v18), .watchOS(.v11), .visionOS(.v2)],
  products: [
    .library(name: "CacheCore", targets: ["CacheCore"]),
    .library(name: "MemoryStore", targets: ["MemoryStore"]),
    .library(name: "DiskStore", targets: ["DiskStore"]),
    .library(name: "SQLiteStore", targets: ["SQLiteStore"]),
    .library(name: "RedisStore", targets: ["RedisStore"]),
    .library(name: "StoreComposition", targets: ["StoreComposition"]),
    .library(name: "CacheNetworking", targets: ["CacheNetworking"]),
    .library(name: "AsyncHTTPNetworking", targets: ["AsyncHTTPNetworking"]),
    .library(name: "CacheTransport", targets: ["CacheTransport"]),
    .library(name: "ETagValidation", targets: ["ETagValidation"]),
    .library(name: "ImageCodecs", targets: ["ImageCodecs"]),
    .library(name: "CacheManager", targets: ["CacheManager"]),
    .library(name: "ImageService", targets: ["ImageService"]),
    .library(name: "HummingbirdImages", targets: ["HummingbirdImages"]),
    .library(name: "CacheTesting", targets: ["CacheTesting"]),
    .library(name: "Etagere", targets: ["Etagere"]),
    .library(name: "CacheUI", targets: ["CacheUI"]),
    .library(name: "CacheTelemetry", targets: ["CacheTelemetry"]),
    .library(name: "CacheCombine", targets: ["CacheCombine"]),
    .library(name: "LoopbackOrigin", targets: ["LoopbackOrigin"]),
    .executable(name: "etagere", targets: ["EtagereTool"]),
  ],
  traits: [
    .trait(name: "Origin", description: "LoopbackOrigin, a programmable HTTP origin for tests (SwiftNIO)"),
    .trait(name: "ContentDecoding", description: "CacheTransport undoes gzip and deflate itself (the system's zlib)"),
    .trait(
      name: "AsyncHTTP", description: "AsyncHTTPNetworking, the engine for servers (async-http-client)",
      enabledTraits: ["ContentDecoding"]),
    .trait(name: "SQLite", description: "SQLiteStore, a store in one database (GRDB, the system's SQLite)"),
    .trait(name: "Redis", description: "RedisStore, a store on Redis or Valkey (SwiftNIO)"),
    .trait(name: "Logging", description: "CacheTelemetry writes a log (swift-log)"),
    .trait(name: "Metrics", description: "CacheTelemetry counts and measures (swift-metrics)"),
    .trait(name: "Tracing", description: "CacheTelemetry makes spans (swift-distributed-tracing)"),
    .trait(name: "OpenCombine", description: "CacheCombine has publishers where there is no Combine (OpenCombine)"),
    .trait(name: "VIPS", description: "ImageCodecs has an engine on Linux (the system's libvips)"),
    .trait(
      name: "Tool", description: "etagere, the command-line tool (swift-argument-parser; on Linux with AsyncHTTP)",
      enabledTraits: toolTraits),
    .trait(
      name: "Thumbnails", description: "The example Thumbnails, thumbnails of folders and URLs (swift-argument-parser)",
      enabledTraits: ["AsyncHTTP", "ContentDecoding", "VIPS"]),
    .trait(
      name: "Service",
      description: "ImageService, its routes for Hummingbird, and etagere serve (Hummingbird, swift-crypto, swift-configuration)",
      enabledTraits: ["Tool", "AsyncHTTP", "VIPS", "Metrics"]),
    .trait(
      name: "Gateway", description: "The examples Gateway, Gallery and HummingbirdCache (Hummingbird), with all other traits",
      enabledTraits: [
        "Tool", "Origin", "AsyncHTTP", "ContentDecoding", "SQLite", "Redis", "VIPS", "Thumbnails", "Logging", "Metrics",
        "Tracing", "OpenCombine", "Service",
      ]),
  ],
  dependencies: [
    .package(url: "https://github.com/apple/swift-http-types", from: "1.4.0"),
    .package(url: "https://github.com/apple/swift-nio", from: "2.81.0"),
    .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.30.0"),
    .package(url: "https://github.com/apple/swift-nio-http2", from: "1.36.0"),
    .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.6.0"),
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.5.0"),
    .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
    .package(url: "https://github.com/OpenCombine/OpenCombine", from: "0.14.0"),
    .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1", traits: []),
    .package(url: "https://github.com/apple/swift-log", from: "1.14.0"),
    .package(url: "https://github.com/apple/swift-metrics", from: "2.9.0"),
    .package(url: "https://github.com/apple/swift-distributed-tracing", from: "1.6.0"),
    .package(url: "https://github.com/apple/swift-nio-extras", from: "1.34.0"),
    .package(url: "https://github.com/apple/swift-crypto", "3.12.0"..<"5.0.0"),
    .package(url: "https://github.com/apple/swift-configuration", from: "1.4.0", traits: ["JSON"]),
  ],
  targets: [
    .target(name: "CChecksum", path: "Modules/CChecksum"),
    module("CacheCore", ["CChecksum", httpTypes]),
    module("MemoryStore", ["CacheCore"]),
    module(
      "DiskStore", ["CacheCore", "CChecksum", httpTypes], exclude: withoutPrivacyManifest, resources: privacyManifest),
    module("SQLiteStore", ["CacheCore", httpTypes, product("GRDB", of: "GRDB.swift", trait: "SQLite")]),
    module(
      "RedisStore",
      [
        "CacheCore", httpTypes, product("NIOCore", of: "swift-nio", trait: "Redis"),
        product("NIOPosix", of: "swift-nio", trait: "Redis"),
        product("NIOSSL", of: "swift-nio-ssl", trait: "Redis"),
      ]),
    module("StoreComposition", ["CacheCore", httpTypes]),
    module("CacheNetworking", ["CacheCore", httpTypes]),
    module(
      "AsyncHTTPNetworking",
      [
        "CacheCore", httpTypes, product("AsyncHTTPClient", of: "async-http-client", trait: "AsyncHTTP"),
        product("ServiceLifecycle", of: "swift-service-lifecycle", trait: "AsyncHTTP"),
        product("NIOCore", of: "swift-nio", trait: "AsyncHTTP"),
        product("NIOPosix", of: "swift-nio", trait: "AsyncHTTP"),
        product("NIOHTTP1", of: "swift-nio", trait: "AsyncHTTP"),
        product("NIOHPACK", of: "swift-nio-http2", trait: "AsyncHTTP"),
        product("NIOHTTP2", of: "swift-nio-http2", trait: "AsyncHTTP"),
        product("NIOSSL", of: "swift-nio-ssl", trait: "AsyncHTTP"),
      ]),
    .systemLibrary(
      name: "CZlib", path: "Modules/CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"]), .brew(["zlib"])]),
    module("CacheTransport", ["CacheCore", zlib, httpTypes]),
    module("ETagValidation", ["CacheCore", httpTypes]),
    // The pkg-config file of GObject contains all flags that the headers of libvips need. The file of libvips also contains flags
    // of its codecs, which cause warnings in SwiftPM.
    .systemLibrary(
      name: "CLibVIPS", path: "Modules/CLibVIPS", pkgConfig: "gobject-2.0",
      providers: [.apt(["libvips-dev"]), .yum(["vips-devel"])]),
    .target(
      name: "CVIPS", dependencies: [.target(name: "CLibVIPS", condition: .when(platforms: [.linux], traits: ["VIPS"]))],
      path: "Modules/CVIPS", cSettings: [.define("ETAGERE_VIPS", .when(platforms: [.linux], traits: ["VIPS"]))],
      linkerSettings: [.linkedLibrary("vips", .when(platforms: [.linux], traits: ["VIPS"]))]),
    module("ImageCodecs", ["CacheCore", vips]),
    module("CacheManager", ["CacheCore", httpTypes]),
    module(
      "ImageService",
      [
        "CacheCore", "CacheManager", "CacheTransport", "ETagValidation", "ImageCodecs", httpTypes,
        product("Crypto", of: "swift-crypto", trait: "Service"),
      ]),
    module(
      "HummingbirdImages",
      ["ImageService", httpTypes, product("Hummingbird", of: "hummingbird", trait: "Service")]),
    // No product contains this target: it is the server of etagere serve and of the example Gateway.
    module(
      "HTTPServing",
      [
        "CacheCore", httpTypes, product("HummingbirdCore", of: "hummingbird", trait: "Service"),
        product("Logging", of: "swift-log", trait: "Service"),
        product("NIOCore", of: "swift-nio", trait: "Service"),
        product("NIOPosix", of: "swift-nio", trait: "Service"),
        product("NIOHTTP1", of: "swift-nio", trait: "Service"),
        product("NIOExtras", of: "swift-nio-extras", trait: "Service"),
        product("ServiceLifecycle", of: "swift-service-lifecycle", trait: "Service"),
      ]),
    // No product contains this target: it is the input and output of etagere and of the example Thumbnails.
    module("CommandIO", ["CacheCore"]),
    module("CacheTesting", ["CacheCore", httpTypes]),
    module(
      "Etagere",
      [
        "CacheCore", "MemoryStore", "DiskStore", "CacheNetworking", "CacheTransport", "ETagValidation", "CacheManager",
        "ImageCodecs", httpTypes,
      ]),
    module("CacheUI", ["Etagere"]),
    module("CacheCombine", ["CacheManager", "CacheCore", openCombine]),
    module(
      "CacheTelemetry",
      [
        "CacheCore", product("Logging", of: "swift-log", trait: "Logging"),
        product("Metrics", of: "swift-metrics", trait: "Metrics"),
        product("Tracing", of: "swift-distributed-tracing", trait: "Tracing"),
      ]),
    module(
      "LoopbackOrigin",
      [
        "CacheCore", "CacheTesting", httpTypes, product("NIOCore", of: "swift-nio", trait: "Origin"),
        product("NIOPosix", of: "swift-nio", trait: "Origin"), product("NIOHTTP1", of: "swift-nio", trait: "Origin"),
      ]),
    .executableTarget(
      name: "EtagereTool",
      dependencies: [
        "Etagere", "CacheTelemetry", "CommandIO", "AsyncHTTPNetworking", "LoopbackOrigin", "ImageService", "HTTPServing",
        "RedisStore", "StoreComposition", httpTypes,
        product("ArgumentParser", of: "swift-argument-parser", trait: "Tool"),
        product("Configuration", of: "swift-configuration", trait: "Service"),
        product("Logging", of: "swift-log", trait: "Service"),
        product("Metrics", of: "swift-metrics", trait: "Service"),
        product("NIOCore", of: "swift-nio", trait: "Service"),
        product("ServiceLifecycle", of: "swift-service-lifecycle", trait: "Service"),
        product("UnixSignals", of: "swift-service-lifecycle", trait: "Service"),
      ],
      path: "Modules/EtagereTool", swiftSettings: strict),

    example("MemoryAlone", ["MemoryStore", "CacheCore"]),
    example("OwnBackend", ["Etagere", "CacheTesting", httpTypes]),
    example("FolderAsNetwork", ["Etagere", "CacheTesting"]),
    example("SessionClient", ["CacheNetworking", httpTypes]),
    example("JSONClient", ["Etagere", "CacheTesting"]),
    // Its clock uses CacheCore's lock, which is not public.
    .executableTarget(
      name: "PhotoList", dependencies: ["CacheUI", "CacheCore", "LoopbackOrigin", httpTypes], path: "Examples/PhotoList",
      swiftSettings: strict),

    // Without package access, the examples can use only the public API.
    .target(
      name: "GatewayServer",
      dependencies: [
        "CacheCore", "CacheManager", "MemoryStore", "DiskStore", "ETagValidation", "AsyncHTTPNetworking", "HTTPServing",
        httpTypes,
        product("Logging", of: "swift-log", trait: "Gateway"),
        product("NIOCore", of: "swift-nio", trait: "Gateway"),
        product("NIOConcurrencyHelpers", of: "swift-nio", trait: "Gateway"),
        product("ServiceLifecycle", of: "swift-service-lifecycle", trait: "Gateway"),
      ],
      path: "Examples/GatewayServer", packageAccess: false, swiftSettings: strict),
    .executableTarget(
      name: "Gateway",
      dependencies: ["GatewayServer", "HTTPServing", "ETagValidation"] + gatewayCommand, path: "Examples/Gateway",
      exclude: ["Dockerfile", "Dockerfile.dockerignore", "compose.yaml"], packageAccess: false, swiftSettings: strict),
    .executableTarget(
      name: "HummingbirdCache",
      dependencies: [
        "CacheCore", "CacheManager", "MemoryStore", "ETagValidation", "AsyncHTTPNetworking", "LoopbackOrigin", httpTypes,
        product("Hummingbird", of: "hummingbird", trait: "Gateway"),
        product("NIOCore", of: "swift-nio", trait: "Gateway"),
        product("ServiceLifecycle", of: "swift-service-lifecycle", trait: "Gateway"),
      ],
      path: "Examples/HummingbirdCache", packageAccess: false,
      // The settings of a usual Hummingbird project: with NonisolatedNonsendingByDefault a middleware would need `@concurrent`.
      swiftSettings: [.enableUpcomingFeature("ExistentialAny"), .enableUpcomingFeature("MemberImportVisibility")]),
    .executableTarget(
      name: "Gallery",
      dependencies: ["GatewayServer", "HTTPServing", "CacheCore", "CacheManager", "LoopbackOrigin", httpTypes] + gatewayCommand,
      path: "Examples/Gallery",
      resources: [
        .embedInCode("Page/gallery.html"), .embedInCode("Page/gallery.css"), .embedInCode("Page/gallery.js"),
      ], packageAccess: false, swiftSettings: strict),

    .executableTarget(
      name: "Thumbnails",
      dependencies: [
        "Etagere", "AsyncHTTPNetworking", "CommandIO", httpTypes,
        product("ArgumentParser", of: "swift-argument-parser", trait: "Thumbnails"),
      ],
      path: "Examples/Thumbnails", packageAccess: false, swiftSettings: strict),

    // No product contains these targets, so clients do not clone their dependencies.
    .target(name: "CAllocationCount", path: "Tests/CAllocationCount"),
    .target(
      name: "CPlainVIPS",
      dependencies: [.target(name: "CLibVIPS", condition: .when(platforms: [.linux], traits: ["VIPS"]))],
      path: "Tests/CPlainVIPS", cSettings: [.define("ETAGERE_VIPS", .when(platforms: [.linux], traits: ["VIPS"]))],
      linkerSettings: [.linkedLibrary("vips", .when(platforms: [.linux], traits: ["VIPS"]))]),
    .executableTarget(
      name: "Benchmarks",
      dependencies: [
        "CacheCore", "CacheManager", "CacheNetworking", "CacheTesting", "CacheTransport", "DiskStore", "ETagValidation",
        "ImageCodecs", "LocalRedis", "LoopbackOrigin", "MemoryStore", "AsyncHTTPNetworking", "CacheTelemetry", "RedisStore",
        "StoreComposition", "HTTPServing", "CAllocationCount", "CPlainVIPS",
        httpTypes,
        product("Metrics", of: "swift-metrics", trait: "Metrics"),
        product("AsyncHTTPClient", of: "async-http-client", trait: "AsyncHTTP"),
        product("NIOCore", of: "swift-nio", trait: "AsyncHTTP"),
        product("NIOHTTP1", of: "swift-nio", trait: "AsyncHTTP"),
        product("NIOEmbedded", of: "swift-nio", trait: "Service"),
        product("NIOHTTPTypes", of: "swift-nio-extras", trait: "Service"),
        product("NIOHTTPTypesHTTP1", of: "swift-nio-extras", trait: "Service"),
      ],
      path: "Tests/Benchmarks", swiftSettings: strict),
    .executableTarget(
      name: "Faults",
      dependencies: [
        "CacheCore", "CacheManager", "CacheTesting", "DiskStore", "ETagValidation", "LocalRedis", "MemoryStore", "RedisStore",
        "SQLiteStore", "StoreComposition", httpTypes,
      ],
      path: "Tests/Faults", swiftSettings: strict),
    .target(
      name: "LocalRedis", dependencies: ["CacheCore", "CacheTesting", "LoopbackOrigin"], path: "Tests/LocalRedis",
      swiftSettings: strict),

    .executableTarget(
      name: "Simulation", dependencies: ["CacheCore", "CacheTesting", "MemoryStore"], path: "Tests/Simulation",
      swiftSettings: strict),

    // Tests/Comparison is a package, too: on a Mac it adds the peers, which this one must not name.
    .executableTarget(
      name: "Comparison", dependencies: ["Etagere", "LoopbackOrigin", httpTypes], path: "Tests/Comparison/Sources",
      packageAccess: false, swiftSettings: strict),

    tests("CacheCoreTests", ["CacheCore", httpTypes]),
    tests("MemoryStoreTests", ["MemoryStore", "CacheTesting"]),
    tests("DiskStoreTests", ["DiskStore", "CChecksum", "CacheTesting", httpTypes]),
    tests(
      "SQLiteStoreTests", ["SQLiteStore", "CacheTesting", httpTypes, product("GRDB", of: "GRDB.swift", trait: "SQLite")]),
    tests(
      "RedisStoreTests",
      [
        "RedisStore", "StoreComposition", "CacheManager", "ETagValidation", "CacheTesting", "LocalRedis", "LoopbackOrigin",
        httpTypes,
      ]),
    tests("StoreCompositionTests", ["StoreComposition", "CacheTesting", "DiskStore", "OwnBackend", httpTypes]),
    tests("CacheNetworkingTests", ["CacheNetworking", "CacheTesting", "LoopbackOrigin", httpTypes]),
    tests(
      "AsyncHTTPNetworkingTests",
      [
        "AsyncHTTPNetworking", "CacheTesting", "LoopbackOrigin", httpTypes,
        product("AsyncHTTPClient", of: "async-http-client", trait: "AsyncHTTP"),
        product("ServiceLifecycle", of: "swift-service-lifecycle", trait: "AsyncHTTP"),
        product("ServiceLifecycleTestKit", of: "swift-service-lifecycle", trait: "AsyncHTTP"),
        product("NIOCore", of: "swift-nio", trait: "AsyncHTTP"),
        product("NIOPosix", of: "swift-nio", trait: "AsyncHTTP"),
        product("NIOEmbedded", of: "swift-nio", trait: "AsyncHTTP"),
        product("NIOHTTP1", of: "swift-nio", trait: "AsyncHTTP"),
        product("NIOSSL", of: "swift-nio-ssl", trait: "AsyncHTTP"),
      ]),
    tests(
      "CacheTransportTests",
      [
        "CacheTransport", "CacheTesting", "CacheManager", "CacheNetworking", "ETagValidation", "MemoryStore",
        "LoopbackOrigin", zlib, httpTypes,
      ]),
    tests("ETagValidationTests", ["ETagValidation", "CacheTesting", httpTypes]),
    tests("ImageCodecsTests", ["ImageCodecs", "CacheTesting", httpTypes]),
    tests(
      "CacheManagerTests",
      ["CacheManager", "CacheTesting", "MemoryStore", "DiskStore", "ETagValidation", "CacheTransport", httpTypes]),
    tests(
      "ImageServiceTests",
      [
        "ImageService", "HummingbirdImages", "MemoryStore", "DiskStore", "CacheTesting", httpTypes,
        product("Hummingbird", of: "hummingbird", trait: "Service"),
        product("HummingbirdTesting", of: "hummingbird", trait: "Service"),
      ]),
    tests(
      "HTTPServingTests",
      [
        "HTTPServing", "CacheCore", "CacheTesting", httpTypes, product("NIOCore", of: "swift-nio", trait: "Service"),
        product("NIOPosix", of: "swift-nio", trait: "Service"), product("NIOEmbedded", of: "swift-nio", trait: "Service"),
        product("NIOHTTP1", of: "swift-nio", trait: "Service"),
        product("NIOExtras", of: "swift-nio-extras", trait: "Service"),
      ]),
    tests("CommandIOTests", ["CommandIO", "CacheCore"]),
    tests("CacheTestingTests", ["CacheTesting", httpTypes]),
    tests("SimulationTests", ["Simulation", "CacheTesting"]),
    tests("LoopbackOriginTests", ["LoopbackOrigin", "CacheTesting", httpTypes]),
    tests("EtagereTests", ["Etagere", "CacheTesting", "LoopbackOrigin", httpTypes]),
    tests("CacheUITests", ["CacheUI", "CacheCore", "CacheTesting", httpTypes]),
    tests(
      "CacheTelemetryTests",
      [
        "CacheTelemetry", "CacheManager", "MemoryStore", "ETagValidation", "CacheTesting", httpTypes,
        product("Logging", of: "swift-log", trait: "Logging"), product("InMemoryLogging", of: "swift-log", trait: "Logging"),
        product("Metrics", of: "swift-metrics", trait: "Metrics"),
        product("MetricsTestKit", of: "swift-metrics", trait: "Metrics"),
        product("Tracing", of: "swift-distributed-tracing", trait: "Tracing"),
        product("InMemoryTracing", of: "swift-distributed-tracing", trait: "Tracing"),
      ]),
    tests(
      "CacheCombineTests", ["CacheCombine", "CacheCore", "CacheTesting", "ETagValidation", "MemoryStore", httpTypes]),
    tests("PhotoListTests", ["PhotoList", "CacheUI", "CacheCore", "CacheTesting", "LoopbackOrigin", httpTypes]),
    .target(
      name: "Browser", dependencies: ["AsyncHTTPNetworking", "CacheCore", httpTypes], path: "Tests/Browser",
      swiftSettings: strict),
    tests("BrowserTests", ["Browser", "LoopbackOrigin", httpTypes]),
    .target(name: "KingfisherNames", path: "Tests/KingfisherNames", swiftSettings: strict),
    .target(name: "AppleNames", path: "Tests/AppleNames", swiftSettings: strict),
    tests(
      "CoexistenceTests",
      [
        "Etagere", "KingfisherNames", "AppleNames", "AsyncHTTPNetworking", "SQLiteStore", "StoreComposition", "CacheTesting",
        "LoopbackOrigin",
      ]),
    tests(
      "EtagereToolTests",
      [
        "Etagere", "CacheTelemetry", "CacheTesting", "LoopbackOrigin", "EtagereTool", "Browser", "AsyncHTTPNetworking",
        "HTTPServing", "ImageService", httpTypes, product("ArgumentParser", of: "swift-argument-parser", trait: "Tool"),
        product("CoreMetrics", of: "swift-metrics", trait: "Service"),
        product("NIOCore", of: "swift-nio", trait: "Service"), product("NIOPosix", of: "swift-nio", trait: "Service"),
      ]),
    tests(
      "GatewayTests",
      [
        "Gateway", "GatewayServer", "HTTPServing", "CacheCore", "ETagValidation", "CacheTesting", "LoopbackOrigin", httpTypes,
        product("NIOCore", of: "swift-nio", trait: "Gateway"),
        product("NIOPosix", of: "swift-nio", trait: "Gateway"),
        product("ServiceLifecycle", of: "swift-service-lifecycle", trait: "Gateway"),
        product("ArgumentParser", of: "swift-argument-parser", trait: "Gateway"),
      ]),
    tests(
      "GalleryTests",
      [
        "Gallery", "GatewayServer", "HTTPServing", "Browser", "AsyncHTTPNetworking", "CacheCore", "CacheTesting",
        "LoopbackOrigin", httpTypes,
        product("Logging", of: "swift-log", trait: "Gateway"),
        product("NIOCore", of: "swift-nio", trait: "Gateway"), product("NIOPosix", of: "swift-nio", trait: "Gateway"),
        product("ServiceLifecycle", of: "swift-service-lifecycle", trait: "Gateway"),
        product("ArgumentParser", of: "swift-argument-parser", trait: "Gateway"),
      ]),
    tests("ExamplesTests", ["FolderAsNetwork", "JSONClient", "MemoryAlone", "OwnBackend", "SessionClient"]),
    .testTarget(
      name: "JSONClientTests", dependencies: ["JSONClient", "Etagere", "CacheTesting"], path: "Tests/JSONClientTests",
      exclude: ["Fixtures"], packageAccess: false, swiftSettings: strict),
    tests(
      "HummingbirdCacheTests",
      [
        "HummingbirdCache", "CacheTesting", httpTypes, product("Hummingbird", of: "hummingbird", trait: "Gateway"),
        product("HummingbirdTesting", of: "hummingbird", trait: "Gateway"),
        product("NIOCore", of: "swift-nio", trait: "Gateway"),
      ]),
    tests(
      "ThumbnailsTests",
      [
        "Thumbnails", "Etagere", "CacheCore", "CacheTesting", "CommandIO", httpTypes,
        product("ArgumentParser", of: "swift-argument-parser", trait: "Thumbnails"),
      ]),
  ],
  swiftLanguageModes: [.v6]
)
