// swift-tools-version: 6.2
import PackageDescription

let package = Package(
  name: "JSONClient",
  platforms: [.iOS(.v18), .macOS(.v15)],
  dependencies: [
    .package(name: "Etagere", path: "../..")
  ],
  targets: [
    .executableTarget(
      name: "JSONClient",
      dependencies: [
        .product(name: "Etagere", package: "Etagere"),
        .product(name: "CacheCore", package: "Etagere"),
        .product(name: "CacheTesting", package: "Etagere"),
      ]),
    .testTarget(
      name: "JSONClientTests",
      dependencies: [
        "JSONClient",
        .product(name: "Etagere", package: "Etagere"),
        .product(name: "CacheTesting", package: "Etagere"),
      ],
      exclude: ["Fixtures"]),
  ],
  swiftLanguageModes: [.v6]
)
