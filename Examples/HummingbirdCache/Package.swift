// swift-tools-version: 6.2
import PackageDescription

/// The upcoming language features of a usual Hummingbird project. With NonisolatedNonsendingByDefault, a middleware would need
/// `@concurrent`.
let features: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"), .enableUpcomingFeature("MemberImportVisibility"),
]

let package = Package(
  name: "HummingbirdCache",
  platforms: [.macOS(.v15)],
  dependencies: [
    .package(name: "Etagere", path: "../..", traits: ["AsyncHTTP", "Origin"]),
    .package(url: "https://github.com/apple/swift-http-types", from: "1.4.0"),
    .package(url: "https://github.com/apple/swift-nio", from: "2.81.0"),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.6.0"),
    .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1", traits: []),
  ],
  targets: [
    .executableTarget(
      name: "HummingbirdCache",
      dependencies: [
        .product(name: "CacheCore", package: "Etagere"),
        .product(name: "CacheManager", package: "Etagere"),
        .product(name: "MemoryStore", package: "Etagere"),
        .product(name: "ETagValidation", package: "Etagere"),
        .product(name: "AsyncHTTPNetworking", package: "Etagere"),
        .product(name: "LoopbackOrigin", package: "Etagere"),
        .product(name: "HTTPTypes", package: "swift-http-types"),
        .product(name: "Hummingbird", package: "hummingbird"),
        .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
      ],
      swiftSettings: features),
    .testTarget(
      name: "HummingbirdCacheTests",
      dependencies: [
        "HummingbirdCache",
        .product(name: "CacheTesting", package: "Etagere"),
        .product(name: "HTTPTypes", package: "swift-http-types"),
        .product(name: "Hummingbird", package: "hummingbird"),
        .product(name: "HummingbirdTesting", package: "hummingbird"),
        .product(name: "NIOCore", package: "swift-nio"),
      ],
      swiftSettings: features),
  ],
  swiftLanguageModes: [.v6]
)
