// swift-tools-version: 6.2
import PackageDescription

/// The upcoming language features of the sources.
let features: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
]

let package = Package(
  name: "Gallery",
  platforms: [.macOS(.v15)],
  dependencies: [
    .package(name: "Etagere", path: "../..", traits: ["AsyncHTTP", "Origin", "Server"]),
    .package(url: "https://github.com/apple/swift-http-types", from: "1.4.0"),
    .package(url: "https://github.com/apple/swift-nio", from: "2.81.0"),
    .package(url: "https://github.com/apple/swift-log", from: "1.14.0"),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.6.0"),
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.5.0"),
    .package(path: "../Gateway"),
    .package(path: "../../Tests/Support/Browser"),
  ],
  targets: [
    .executableTarget(
      name: "Gallery",
      dependencies: [
        .product(name: "GatewayServer", package: "Gateway"),
        .product(name: "HTTPServing", package: "Etagere"),
        .product(name: "CacheCore", package: "Etagere"),
        .product(name: "CacheManager", package: "Etagere"),
        .product(name: "LoopbackOrigin", package: "Etagere"),
        .product(name: "HTTPTypes", package: "swift-http-types"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
        .product(name: "UnixSignals", package: "swift-service-lifecycle"),
      ],
      resources: [
        .embedInCode("Page/gallery.html"), .embedInCode("Page/gallery.css"), .embedInCode("Page/gallery.js"),
      ],
      swiftSettings: features),
    .testTarget(
      name: "GalleryTests",
      dependencies: [
        "Gallery",
        .product(name: "GatewayServer", package: "Gateway"),
        .product(name: "HTTPServing", package: "Etagere"),
        .product(name: "AsyncHTTPNetworking", package: "Etagere"),
        .product(name: "CacheCore", package: "Etagere"),
        .product(name: "CacheTesting", package: "Etagere"),
        .product(name: "LoopbackOrigin", package: "Etagere"),
        .product(name: "HTTPTypes", package: "swift-http-types"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
        .product(name: "ExampleBrowser", package: "Browser"),
      ],
      swiftSettings: features),
  ],
  swiftLanguageModes: [.v6]
)
