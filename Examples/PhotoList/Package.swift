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
  name: "PhotoList",
  platforms: [.iOS(.v18), .macOS(.v15)],
  dependencies: [
    .package(name: "Etagere", path: "../..", traits: ["Origin", "VIPS"]),
    .package(url: "https://github.com/apple/swift-http-types", from: "1.4.0"),
  ],
  targets: [
    .executableTarget(
      name: "PhotoList",
      dependencies: [
        .product(name: "CacheUI", package: "Etagere"),
        .product(name: "CacheCore", package: "Etagere"),
        .product(name: "LoopbackOrigin", package: "Etagere"),
        .product(name: "HTTPTypes", package: "swift-http-types"),
      ],
      swiftSettings: features),
    .testTarget(
      name: "PhotoListTests",
      dependencies: [
        "PhotoList",
        .product(name: "CacheUI", package: "Etagere"),
        .product(name: "CacheTesting", package: "Etagere"),
      ],
      swiftSettings: features),
  ],
  swiftLanguageModes: [.v6]
)
