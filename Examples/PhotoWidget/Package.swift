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
  name: "PhotoWidget",
  platforms: [.iOS(.v18), .macOS(.v15)],
  dependencies: [
    .package(name: "Etagere", path: "../..", traits: ["VIPS"])
  ],
  targets: [
    .executableTarget(
      name: "PhotoWidget",
      dependencies: [
        .product(name: "CacheUI", package: "Etagere"),
        .product(name: "CacheTesting", package: "Etagere"),
      ],
      swiftSettings: features),
    .testTarget(
      name: "PhotoWidgetTests",
      dependencies: [
        "PhotoWidget",
        .product(name: "CacheUI", package: "Etagere"),
        .product(name: "CacheTesting", package: "Etagere"),
      ],
      swiftSettings: features),
  ],
  swiftLanguageModes: [.v6]
)
