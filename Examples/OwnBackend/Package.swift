// swift-tools-version: 6.2
import PackageDescription

let package = Package(
  name: "OwnBackend",
  platforms: [.macOS(.v15)],
  dependencies: [
    .package(name: "Etagere", path: "../..")
  ],
  targets: [
    .executableTarget(
      name: "OwnBackend",
      dependencies: [
        .product(name: "Etagere", package: "Etagere"),
        .product(name: "CacheTesting", package: "Etagere"),
      ]),
    .testTarget(
      name: "OwnBackendTests",
      dependencies: [
        "OwnBackend",
        .product(name: "CacheTesting", package: "Etagere"),
      ]),
  ],
  swiftLanguageModes: [.v6]
)
