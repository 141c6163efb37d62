// swift-tools-version: 6.2
import PackageDescription

let package = Package(
  name: "MemoryAlone",
  platforms: [.macOS(.v15)],
  dependencies: [
    .package(name: "Etagere", path: "../..")
  ],
  targets: [
    .executableTarget(
      name: "MemoryAlone",
      dependencies: [
        .product(name: "MemoryStore", package: "Etagere"),
        .product(name: "CacheCore", package: "Etagere"),
      ])
  ],
  swiftLanguageModes: [.v6]
)
