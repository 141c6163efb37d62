#if Tool && Service
import ArgumentParser
import Foundation
import ImageService
import Testing

@testable import EtagereTool

@Suite("etagere-cli serve: Dockerfile and compose file")
struct ServeContainerTests {
  private static func text(_ path: String) throws -> String {
    let root = URL(filePath: #filePath).appending(path: "../../../..").standardized
    return try String(contentsOf: root.appending(path: path), encoding: .utf8)
  }

  /// Returns the JSON array that follows `start`.
  private static func array(after start: String, in text: String) throws -> [String] {
    let begin = try #require(text.range(of: start)).upperBound
    let line = text[begin...].prefix { $0 != "\n" }
    return try JSONDecoder().decode([String].self, from: Data(line.utf8))
  }

  @Test("the service accepts the options of the files")
  func options() async throws {
    let entry = try Self.array(after: "\nENTRYPOINT ", in: Self.text("Examples/ImageServer/Dockerfile"))
    let command = try Self.array(after: "\n    command: ", in: Self.text("Examples/ImageServer/compose.yaml"))
    #expect(entry.prefix(2) == ["etagere-cli", "serve"])
    let parsed = try #require(try EtagereCommand.parseAsRoot(entry.dropFirst() + command) as? ServeCommand)
    let key = ["ETAGERE_KEYS": String(repeating: "01", count: 32)]
    let settings = try await ServeSettings.read(file: nil, flags: parsed.flags.values, environment: key)
    #expect(settings.keys.count == 1)
    #expect(settings.redis == "redis://valkey")
    #expect(settings.cacheFolder == "/var/cache/etagere")
    #expect(try settings.configuration().sources.count == 1)
  }

  @Test("the Dockerfile builds a product with traits of the package, and has the folder of the cache")
  func build() throws {
    let (dockerfile, manifest) = (try Self.text("Examples/ImageServer/Dockerfile"), try Self.text("Package.swift"))
    #expect(dockerfile.contains("--traits Service,Redis --product etagere-cli"))
    for trait in ["Service", "Redis"] { #expect(manifest.contains("name: \"\(trait)\"")) }
    #expect(manifest.contains(".executable(name: \"etagere-cli\""))
    let version = try #require(manifest.firstMatch(of: /swift-tools-version: ([0-9.]+)/)?.output.1)
    #expect(dockerfile.contains("swift:\(version)-noble AS build"))
    #expect(dockerfile.contains("VOLUME /var/cache/etagere"))
    #expect(try Self.text("Examples/ImageServer/compose.yaml").contains("dockerfile: Examples/ImageServer/Dockerfile"))
  }
}
#endif
