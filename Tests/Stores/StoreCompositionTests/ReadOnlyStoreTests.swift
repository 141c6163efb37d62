import CacheCore
import CacheTesting
import HTTPTypes
import StoreComposition
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Read-only store: shipped files")
struct ReadOnlyStoreTests {
  private let logo = CacheKey(resource: "https://example.com/logo.svg")

  private func folder(_ entries: String, version: Int = 1) throws -> TemporaryFolder {
    let folder = try TemporaryFolder()
    try folder.put("<svg/>", "logo.svg")
    try folder.put("{ \"version\": \(version), \"entries\": [ \(entries) ] }", "manifest.json")
    return folder
  }

  private let whole = #"""
    { "url": "https://EXAMPLE.com:443/logo.svg", "file": "logo.svg", "freshFor": 60,
      "fields": { "Content-Type": "image/svg+xml", "ETag": "\"7\"", "Date": "Thu, 01 Jan 2026 00:00:00 GMT" } }
    """#

  @Test("a file is found under its normalized URL, with the fields of the manifest")
  func found() async throws {
    let folder = try folder(whole)
    let store = try ReadOnlyStore(folder: folder.url)

    let entry = try #require(await store.variants(of: logo.resource).first)
    let created = Timestamp(seconds: 1_767_225_600)
    #expect(try await entry.body.collect() == Data("<svg/>".utf8))
    #expect(entry.key == logo)
    #expect(entry.metadata.response.headerFields[.eTag] == "\"7\"")
    #expect(entry.metadata.bodyLength == 6)
    #expect(entry.metadata.freshness == Freshness(generatedAt: created, freshUntil: created + .seconds(60)))
    #expect(try await store.entry(for: logo, range: 1..<4)?.body.collect() == Data("svg".utf8))
    #expect(try await store.entry(for: CacheKey(resource: "https://example.com/other")) == nil)
    #expect(try await store.entries { _, _ in true }.map(\.key) == [logo])
  }

  @Test("an entry without a lifetime is stale from the start, and its revision stays the same while the file does")
  func stale() async throws {
    let folder = try folder(#"{ "url": "https://example.com/logo.svg", "file": "logo.svg" }"#)
    let first = try #require(await ReadOnlyStore(folder: folder.url).entry(for: logo)).metadata
    let second = try #require(await ReadOnlyStore(folder: folder.url).entry(for: logo)).metadata
    #expect(!first.freshness.isFresh(at: first.freshness.generatedAt))
    #expect(first.revision == second.revision)

    try folder.put("<svg id='2'/>", "logo.svg")
    #expect(try await ReadOnlyStore(folder: folder.url).entry(for: logo)?.metadata.revision != first.revision)
  }

  @Test("partitions and custom keys match those of requests")
  func names() async throws {
    let folder = try folder(
      #"{ "url": "https://example.com/logo.svg", "file": "logo.svg", "partition": "tenant", "key": "the logo" }"#)
    let store = try ReadOnlyStore(folder: folder.url)
    let resource = ResourceID.make(uri: "https://example.com/logo.svg", key: "the logo", partition: "tenant")
    #expect(try await store.text(CacheKey(resource: resource)) == "<svg/>")
    #expect(try await store.entry(for: logo) == nil)
  }

  @Test("a large file is read in chunks, whole or in part")
  func large() async throws {
    let folder = try TemporaryFolder()
    try folder.put(Self.film, "film")
    try folder.put(#"{ "version": 1, "entries": [ { "url": "https://example.com/film", "file": "film" } ] }"#, "manifest.json")
    let store = try ReadOnlyStore(folder: folder.url)
    let key = CacheKey(resource: "https://example.com/film")
    let entry = try #require(await store.entry(for: key))
    #expect(entry.body.data == nil)
    #expect(try await entry.body.collect() == Self.film)
    #expect(try await store.entry(for: key, range: 300_000..<900_000)?.body.collect() == Self.film[300_000..<900_000])
  }

  private static let film = Data((0..<1_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) })

  @Test("stores, updates and removals are refused and change nothing")
  func refusals() async throws {
    let folder = try folder(whole)
    let store = try ReadOnlyStore(folder: folder.url)
    let stored = try #require(await store.entry(for: logo)).metadata
    let refused: [@Sendable () async throws -> Void] = [
      { _ = try await store.makeWriter(for: logo, metadata: metadata()) },
      { _ = try await store.updateMetadata(of: logo, to: stored, ifRevision: stored.revision) },
      { try await store.remove(logo, ifRevision: nil) }, { try await store.removeAll() },
    ]
    for attempt in refused { #expect(await failure(attempt)?.code == .readOnly) }
    #expect(try await store.text(logo) == "<svg/>")
  }

  @Test(
    "an invalid manifest is refused",
    arguments: [
      (#"{ "url": "https://example.com/a", "file": "../secret" }"#, CacheError.Code.invalidConfiguration),
      (#"{ "url": "https://example.com/a", "file": "/etc/passwd" }"#, .invalidConfiguration),
      (#"{ "url": "https://example.com/a", "file": "" }"#, .invalidConfiguration),
      ("{ \"url\": \"https://example.com/a\", \"file\": \"folder/../\u{301}logo.svg\" }", .invalidConfiguration),
      (#"{ "url": "https://example.com/a", "file": "missing" }"#, .fileSystem),
      (#"{ "url": "https://example.com/a", "file": "folder" }"#, .fileSystem),
      (#"{ "url": "https://example.com/a", "file": "link" }"#, .fileSystem),
      (#"{ "url": "https://example.com/a", "file": "away/secret" }"#, .fileSystem),
      (#"{ "url": "not absolute", "file": "logo.svg" }"#, .invalidURL),
      (#"{ "url": "https://example.com/a", "file": "logo.svg", "fields": { "a b": "c" } }"#, .invalidConfiguration),
      (#"{ "url": "https://example.com/a", "file": "logo.svg", "fields": { "a": "b\r\nc: d" } }"#, .invalidConfiguration),
      (
        #"{ "url": "https://example.com/a", "file": "logo.svg" }, { "url": "https://example.com/a", "file": "logo.svg" }"#,
        .invalidConfiguration
      ),
      (#"{ "url": "https://example.com/a", "file": "logo.svg", "freshFor": -1 }"#, .invalidConfiguration),
      (#"{ "file": "logo.svg" }"#, .invalidConfiguration), ("nonsense", .invalidConfiguration),
    ])
  func badManifests(entries: String, code: CacheError.Code) async throws {
    let folder = try folder(entries)
    try FileManager.default.createDirectory(atPath: folder.path + "/folder", withIntermediateDirectories: false)
    try FileManager.default.createSymbolicLink(atPath: folder.path + "/link", withDestinationPath: "/etc/passwd")
    try folder.put("<svg/>", "\u{301}logo.svg")
    let outside = try TemporaryFolder()
    try outside.put("secret", "secret")
    try FileManager.default.createSymbolicLink(atPath: folder.path + "/away", withDestinationPath: outside.path)
    let error = await failure { _ = try ReadOnlyStore(folder: folder.url) }
    #expect(error?.code == code)
  }

  @Test("files in subfolders are read, and a manifest that is a link is not")
  func folders() async throws {
    let folder = try folder(#"{ "url": "https://example.com/logo.svg", "file": "images/de/logo.svg" }"#)
    try FileManager.default.createDirectory(atPath: folder.path + "/images/de", withIntermediateDirectories: true)
    try folder.put("<svg/>", "images/de/logo.svg")
    #expect(try await ReadOnlyStore(folder: folder.url).text(logo) == "<svg/>")

    let path = folder.path
    try FileManager.default.createSymbolicLink(atPath: path + "/link.json", withDestinationPath: path + "/manifest.json")
    #expect(await failure { _ = try ReadOnlyStore(folder: folder.url, manifest: "link.json") }?.code == .fileSystem)
  }

  @Test("a later version of the manifest and a missing manifest cause different errors")
  func versions() async throws {
    let later = try folder(whole, version: 2)
    #expect(await failure { _ = try ReadOnlyStore(folder: later.url) }?.code == .unsupported)
    let error = await failure { _ = try ReadOnlyStore(folder: later.url, manifest: "other.json") }
    #expect(error?.code == .fileSystem)
    #expect(error?.path?.hasSuffix("other.json") == true)
  }

  @Test("a file that is replaced or deleted later causes an error, and never other bytes")
  func changedFile() async throws {
    let folder = try folder(whole)
    let store = try ReadOnlyStore(folder: folder.url)
    try folder.put("<svg id='2'/>", "logo.svg")
    #expect(await failure { _ = try await store.entry(for: logo) }?.code == .damagedEntry)
    try FileManager.default.removeItem(atPath: folder.path + "/logo.svg")
    #expect(await failure { _ = try await store.entry(for: logo) }?.code == .fileSystem)
    // Another layer may have the entry.
    let other = VolatileStore()
    let layered = try LayeredStore([store, other])
    #expect(await failure { _ = try await layered.entry(for: logo) }?.code == .fileSystem)
    try await other.store(Data("kept".utf8), for: logo, metadata: metadata())
    #expect(try await layered.text(logo) == "kept")
  }
}
