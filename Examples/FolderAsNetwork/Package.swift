// swift-tools-version: 6.2
import PackageDescription

let package = Package(
  name: "FolderAsNetwork",
  platforms: [.macOS(.v15)],
  dependencies: [
    .package(name: "Etagere", path: "../..")
  ],
  targets: [
    .executableTarget(
      name: "FolderAsNetwork",
      dependencies: [
        .product(name: "Etagere", package: "Etagere"),
        .product(name: "CacheTesting", package: "Etagere"),
      ])
  ],
  swiftLanguageModes: [.v6]
)
