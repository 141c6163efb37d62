// swift-tools-version: 6.2
import PackageDescription

// The sources of the target Browser of the package above, for the tests of an example. The module has another name, because
// both packages are built in the same folder.
let package = Package(
  name: "Browser",
  platforms: [.macOS(.v15)],
  products: [.library(name: "ExampleBrowser", targets: ["ExampleBrowser"])],
  dependencies: [
    // The package that uses this one enables the trait AsyncHTTP.
    .package(name: "Etagere", path: "../../.."),
    .package(url: "https://github.com/apple/swift-http-types", from: "1.4.0"),
  ],
  targets: [
    .target(
      name: "ExampleBrowser",
      dependencies: [
        .product(name: "AsyncHTTPNetworking", package: "Etagere"),
        .product(name: "CacheCore", package: "Etagere"),
        .product(name: "HTTPTypes", package: "swift-http-types"),
      ],
      path: "Sources/Browser",
      swiftSettings: [
        .define("AsyncHTTP"),
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
      ])
  ],
  swiftLanguageModes: [.v6]
)
