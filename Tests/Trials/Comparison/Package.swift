// swift-tools-version: 6.2
import PackageDescription

// The same sources as the target Comparison of the package above. There they are built with all of it, and without the peers,
// which no client may have to clone. Here, on a Mac, the peers are added: swift run --package-path Tests/Trials/Comparison
var dependencies: [Package.Dependency] = [
  .package(name: "Etagere", path: "../../..", traits: ["Origin"]),
  .package(url: "https://github.com/apple/swift-http-types", from: "1.4.0"),
]
var products: [Target.Dependency] = [
  .product(name: "Etagere", package: "Etagere"),
  .product(name: "LoopbackOrigin", package: "Etagere"),
  .product(name: "HTTPTypes", package: "swift-http-types"),
]
#if os(macOS)
dependencies += [
  .package(url: "https://github.com/onevcat/Kingfisher", from: "8.11.0"),
  .package(url: "https://github.com/kean/Nuke", from: "13.2.0"),
]
products += [.product(name: "Kingfisher", package: "Kingfisher"), .product(name: "Nuke", package: "Nuke")]
#endif

let package = Package(
  name: "Comparison",
  platforms: [.macOS(.v15)],
  dependencies: dependencies,
  targets: [
    .executableTarget(
      name: "Comparison", dependencies: products, path: "Sources",
      swiftSettings: [.define("Origin"), .enableUpcomingFeature("ExistentialAny")])
  ],
  swiftLanguageModes: [.v6]
)
