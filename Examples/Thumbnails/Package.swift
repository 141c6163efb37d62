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
  name: "Thumbnails",
  platforms: [.macOS(.v15)],
  dependencies: [
    .package(name: "Etagere", path: "../..", traits: ["AsyncHTTP", "VIPS"]),
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.5.0"),
  ],
  targets: [
    .executableTarget(
      name: "Thumbnails",
      dependencies: [
        .product(name: "Etagere", package: "Etagere"),
        .product(name: "AsyncHTTPNetworking", package: "Etagere"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      swiftSettings: features),
    .testTarget(
      name: "ThumbnailsTests",
      dependencies: [
        "Thumbnails",
        .product(name: "Etagere", package: "Etagere"),
        .product(name: "CacheCore", package: "Etagere"),
        .product(name: "CacheTesting", package: "Etagere"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      swiftSettings: features),
  ],
  swiftLanguageModes: [.v6]
)
