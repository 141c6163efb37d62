// swift-tools-version: 6.2
import PackageDescription

let package = Package(
  name: "SessionClient",
  platforms: [.macOS(.v15)],
  dependencies: [
    .package(name: "Etagere", path: "../.."),
    .package(url: "https://github.com/apple/swift-http-types", from: "1.4.0"),
  ],
  targets: [
    .executableTarget(
      name: "SessionClient",
      dependencies: [
        .product(name: "CacheNetworking", package: "Etagere"),
        .product(name: "HTTPTypes", package: "swift-http-types"),
      ])
  ],
  swiftLanguageModes: [.v6]
)
