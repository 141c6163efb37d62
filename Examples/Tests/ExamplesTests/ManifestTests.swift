import Foundation
import Testing

/// The tests build the examples as one package. These tests compare it with the manifests that a reader copies.
@Suite("The manifests of the examples")
struct ManifestTests {
  private struct Manifest: Decodable {
    struct Dependency: Decodable {
      struct Folder: Decodable {
        struct Trait: Decodable { var name: String }

        var identity: String
        var traits: [Trait]?
      }

      struct Repository: Decodable { var identity: String }

      var fileSystem: [Folder]?
      var sourceControl: [Repository]?
    }

    struct Target: Decodable {
      struct Dependency: Decodable {
        var product: [String?]?
        var byName: [String?]?
        var target: [String?]?

        /// The product and its package, or the target.
        ///
        /// - Parameter targets: The targets of all examples. Those are products of other packages for an example.
        func name(_ targets: Set<String>) -> String {
          let names = (product ?? byName ?? target ?? []).compactMap(\.self)
          guard let first = names.first, !targets.contains(first) else { return names.first ?? "" }
          return names.joined(separator: " of ")
        }

        private enum CodingKeys: String, CodingKey { case product, byName, target }

        init(from decoder: any Decoder) throws {
          let container = try decoder.container(keyedBy: CodingKeys.self)
          /// The first elements of an array. The last one is an object or null: the condition.
          func names(_ key: CodingKeys, _ count: Int) throws -> [String?]? {
            guard container.contains(key) else { return nil }
            var elements = try container.nestedUnkeyedContainer(forKey: key)
            return try (0..<count).map { _ in try elements.decodeNil() ? nil : elements.decode(String.self) }
          }
          (product, byName, target) = (try names(.product, 2), try names(.byName, 1), try names(.target, 1))
        }
      }

      struct Resource: Decodable { var path: String }

      var name: String
      var type: String
      var dependencies: [Dependency]
      var resources: [Resource]
      var exclude: [String]

      func summary(_ targets: Set<String>) -> [String] {
        [type] + dependencies.map { $0.name(targets) }.sorted() + resources.map { "resource \($0.path)" }.sorted()
          + exclude.map { "without \($0)" }.sorted()
      }
    }

    var dependencies: [Dependency]
    var targets: [Target]

    /// The products of a package that the targets use.
    func products(of package: String) -> Set<String> {
      Set(
        targets.flatMap(\.dependencies).compactMap(\.product)
          .compactMap { $0.last == package ? $0.first.flatMap(\.self) : nil })
    }
  }

  /// The modules that are empty without a trait.
  private static let traits = [
    "AsyncHTTPNetworking": "AsyncHTTP", "LoopbackOrigin": "Origin", "HTTPServing": "Server", "SQLiteStore": "SQLite",
    "RedisStore": "Redis", "ImageService": "Service", "HummingbirdImages": "Service",
  ]

  private static let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  private static let examples: [String] = {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
    return names.filter { FileManager.default.fileExists(atPath: folder.appending(path: "\($0)/Package.swift").path) }.sorted()
  }()

  private static func manifest(_ path: String) async throws -> Manifest {
    let (status, output) = try await run(
      URL(filePath: "/usr/bin/env"), ["swift", "package", "--package-path", folder.appending(path: path).path, "dump-package"])
    try #require(status == 0, "\(output)")
    // Warnings may precede the document.
    let start = try #require(output.firstIndex(of: "{"))
    return try JSONDecoder().decode(Manifest.self, from: Data(output[start...].utf8))
  }

  @Test("the targets of an example are those that the tests build", .timeLimit(.minutes(30)))
  func targets() async throws {
    let workspace = try await Self.manifest("")
    let names = Set(workspace.targets.map(\.name))
    let known = Dictionary(workspace.targets.map { ($0.name, $0.summary(names)) }) { first, _ in first }
    #expect(Self.examples.count > 5)
    var built: Set<String> = []
    for example in Self.examples {
      let manifest = try await Self.manifest(example)
      #expect(!manifest.targets.isEmpty)
      for target in manifest.targets {
        #expect(known[target.name] == target.summary(names), "\(target.name)")
        built.insert(target.name)
      }
      let traits = manifest.dependencies.compactMap(\.fileSystem).joined().flatMap { $0.traits ?? [] }.map(\.name)
      for product in manifest.products(of: "Etagere") {
        if let trait = Self.traits[product] { #expect(traits.contains(trait), "\(example): \(product) needs \(trait)") }
      }
      for package in manifest.dependencies.compactMap(\.sourceControl).joined() {
        #expect(!manifest.products(of: package.identity).isEmpty, "\(example) does not use \(package.identity)")
      }
    }
    #expect(Set(known.keys).subtracting(built) == ["ExamplesTests"])
  }
}
