import CacheCore
import CacheTesting
import DiskStore
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Disk store: keys")
struct KeyTests {
  let folder: TemporaryFolder
  let cache: DiskCache

  init() throws {
    folder = try TemporaryFolder()
    cache = try DiskCache(path: folder.path + "/inner")
  }

  @Test("keys of any characters and any length are distinct, and their contents reach no path", arguments: 0..<3)
  func oddKeys(part: Int) async throws {
    let keys = StoreContract.oddNames.map { text in
      switch part {
      case 0: CacheKey(resource: text)
      case 1: CacheKey(resource: "r", variant: text)
      default: CacheKey(resource: "r", variant: "v", transform: text)
      }
    }
    for (index, key) in keys.enumerated() {
      try await cache.store(bytes(50, seed: UInt64(index)), for: key, metadata: metadata())
    }
    for (index, key) in keys.enumerated() {
      let entry = try #require(try await cache.entry(for: key))
      #expect(entry.key == key)
      #expect(try await entry.body.collect() == bytes(50, seed: UInt64(index)))
    }
    let names = Set("0123456789abcdef.edf/")
    let root = folder.path + "/inner/etagere-1/entries/"
    let files = folder.files(below: root)
    #expect(files.count == keys.count)
    for file in files { #expect(file.dropFirst(root.count).allSatisfy { names.contains($0) }, "\(file)") }
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["inner"])
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path + "/inner") == ["etagere-1"])
  }

  @Test("another key's entry under a key's name is a miss and stays")
  func collision() async throws {
    let one = CacheKey(resource: "one")
    let other = CacheKey(resource: "other")
    try await cache.store(bytes(300, seed: 1), for: one, metadata: metadata())
    let entries = folder.path + "/inner/etagere-1/entries"
    let entryPath = try #require(folder.files(below: entries).first)
    try await cache.store(bytes(300, seed: 2), for: other, metadata: metadata())
    let source = try #require(folder.files(below: entries).first { $0 != entryPath })
    try put(try file(source), entryPath)
    #expect(try await cache.bytes(one) == nil)
    #expect(fileExists(entryPath))
    #expect(cache.counters.damaged == 0)
    #expect(try await cache.bytes(other) == bytes(300, seed: 2))
    let report = try await cache.verify(removingDamaged: true)
    #expect(report.good == 1)
    #expect(report.removed == 1)
  }

  @Test("a file in place of another variant is neither listed nor served, even for its own key")
  func displacedVariant() async throws {
    // Given
    let german = CacheKey(resource: "r", variant: "de")
    let english = CacheKey(resource: "r", variant: "en")
    try await cache.store(bytes(300, seed: 1), for: german, metadata: metadata())
    let entryPath = try #require(folder.files(below: folder.path + "/inner/etagere-1/entries").first)
    let displaced = try file(entryPath)
    try await cache.store(bytes(300, seed: 2), for: english, metadata: metadata())
    let other = try #require(folder.files(below: folder.path + "/inner/etagere-1/entries").first { $0 != entryPath })

    // When
    try put(displaced, other)
    try await cache.store(bytes(300, seed: 3), for: german, metadata: metadata())

    // Then
    let found = try await cache.variants(of: "r")
    #expect(found.map(\.key) == [german])
    #expect(try await found.first?.body.collect() == bytes(300, seed: 3))
    #expect(try await cache.entries { _, _ in true }.map(\.key) == [german])
    #expect(try await cache.entries().map(\.key) == [german])
  }

  @Test("a file in place of another transform is not listed, even after its own entry was removed")
  func displacedTransform() async throws {
    // Given
    let small = CacheKey(resource: "r", transform: "small")
    let large = CacheKey(resource: "r", transform: "large")
    let entries = folder.path + "/inner/etagere-1/entries"
    try await cache.store(bytes(300, seed: 1), for: small, metadata: metadata())
    let entryPath = try #require(folder.files(below: entries).first)
    try await cache.store(bytes(300, seed: 2), for: large, metadata: metadata())
    let other = try #require(folder.files(below: entries).first { $0 != entryPath })

    // When
    try put(try file(entryPath), other)

    // Then
    #expect(try await cache.transforms(of: "r").map(\.key) == [small])
    try await cache.remove(small, ifRevision: nil)
    #expect(try await cache.transforms(of: "r").isEmpty)
    #expect(try await cache.entries().isEmpty)
  }

  @Test("the variants of a resource are listed without its transforms and other resources")
  func variants() async throws {
    #expect(try await cache.variants(of: "r").isEmpty)
    let keys = [
      CacheKey(resource: "r"), CacheKey(resource: "r", variant: "de"), CacheKey(resource: "r", variant: "en"),
    ]
    var revisions: [CacheKey: Revision] = [:]
    for key in keys { revisions[key] = try await cache.store(bytes(200_000), for: key, metadata: metadata()).revision }
    try await cache.store(bytes(9), for: CacheKey(resource: "r", transform: "thumb"), metadata: metadata())
    try await cache.store(bytes(9), for: CacheKey(resource: "r", variant: "de", transform: "thumb"), metadata: metadata())
    try await cache.store(bytes(9), for: CacheKey(resource: "s"), metadata: metadata())
    let found = try await cache.variants(of: "r")
    #expect(Set(found.map(\.key)) == Set(keys))
    for entry in found { #expect(entry.metadata.revision == revisions[entry.key]) }
  }

  @Test("removing a variant leaves the others, and removing the last one removes their folder")
  func removedVariant() async throws {
    let german = CacheKey(resource: "r", variant: "de")
    let english = CacheKey(resource: "r", variant: "en")
    for key in [german, english] { try await cache.store(bytes(9), for: key, metadata: metadata()) }
    try await cache.remove(german, ifRevision: nil)
    #expect(try await cache.variants(of: "r").map(\.key) == [english])
    try await cache.remove(english, ifRevision: nil)
    try await cache.remove(english, ifRevision: nil)
    #expect(try await cache.variants(of: "r").isEmpty)
    let left = try FileManager.default.subpathsOfDirectory(atPath: folder.path + "/inner/etagere-1/entries")
    #expect(left.allSatisfy { $0.count == 2 })
  }

  @Test("a removal with a revision leaves an entry with another revision")
  func conditionalRemoval() async throws {
    let key = CacheKey(resource: "r")
    let stored = try await cache.store(bytes(9), for: key, metadata: metadata())
    try await cache.remove(key, ifRevision: .random())
    #expect(try await cache.bytes(key) != nil)
    try await cache.remove(key, ifRevision: stored.revision)
    #expect(try await cache.bytes(key) == nil)
  }
}
