import CacheCore
import CacheTesting
import DiskStore
import HTTPTypes
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The folders that earlier versions have written, in `Tests/Support/Golden` (`disk-1` and so on).
private enum Golden {
  /// The version that is written now.
  static let current = 1

  static func folder(_ version: Int) -> String {
    let tests = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    return tests.appending(path: "Support/Golden/disk-\(version)").path(percentEncoded: false)
  }

  /// Opens a copy, at a time when none of its entries has expired.
  static func opened(_ version: Int, in folder: TemporaryFolder) throws -> DiskCache {
    try FileManager.default.copyItem(atPath: Self.folder(version) + "/etagere-1", toPath: folder.root)
    return try DiskCache(path: folder.path, configuration: .init(clock: ManualClock(now: GoldenEntry.start + .seconds(3_660))))
  }

  /// Writes the entries as this version does, under the folder's existing key if it has one.
  static func write(_ entries: [GoldenEntry], in folder: TemporaryFolder) async throws {
    let clock = ManualClock(now: GoldenEntry.start)
    let cache = try DiskCache(path: folder.path, configuration: .init(clock: clock))
    for entry in entries {
      var stored = entry.stored
      stored.trailers = nil
      let writer = try await cache.makeWriter(for: entry.key, metadata: stored)
      if !entry.body.isEmpty { try await writer.write(entry.body) }
      _ = try await writer.commit(trailers: entry.stored.trailers)
      if let updated = entry.updated {
        #expect(try await cache.updateMetadata(of: entry.key, to: updated, ifRevision: entry.stored.revision))
      }
    }
    await cache.close()
  }
}

@Suite("Golden files: entries that an earlier version has stored")
struct GoldenTests {
  @Test("a golden entry is read byte for byte and field for field", arguments: GoldenEntry.version1)
  func reads(_ golden: GoldenEntry) async throws {
    let folder = try TemporaryFolder()
    let cache = try Golden.opened(1, in: folder)

    let entry = try #require(try await cache.entry(for: golden.key))

    #expect(try await entry.body.collect() == golden.body)
    #expect(entry.metadata == golden.metadata)
    let variants = try await cache.variants(of: golden.key.resource)
    #expect(variants.map(\.key) == [golden.key] && variants.map(\.metadata) == [golden.metadata])
    await cache.close()
  }

  @Test("golden entries are counted, listed and intact")
  func listed() async throws {
    let folder = try TemporaryFolder()
    let cache = try Golden.opened(1, in: folder)

    let report = try await cache.verify()
    #expect(report.good == GoldenEntry.version1.count && report.damaged.isEmpty && report.newer == 0)
    let listed = try await cache.entries { _, _ in true }
    #expect(Set(listed.map(\.key)) == Set(GoldenEntry.version1.map(\.key)))
    await cache.close()
  }

  @Test("golden entries can be updated and replaced")
  func changed() async throws {
    let folder = try TemporaryFolder()
    let cache = try Golden.opened(1, in: folder)
    for golden in GoldenEntry.version1 {
      var metadata = golden.metadata
      metadata.response.headerFields[.server] = "updated"
      #expect(try await cache.updateMetadata(of: golden.key, to: metadata, ifRevision: metadata.revision))
      #expect(try await cache.entry(for: golden.key)?.metadata == metadata)
      try await cache.store(bytes(100), for: golden.key, metadata: DiskStoreTests.metadata())
      #expect(try await cache.bytes(golden.key) == bytes(100))
    }
    await cache.close()
  }

  @Test("this version writes the same golden files byte for byte")
  func writes() async throws {
    let folder = try TemporaryFolder()
    try FileManager.default.createDirectory(atPath: folder.root, withIntermediateDirectories: true)
    let golden = Golden.folder(Golden.current) + "/etagere-1"
    try FileManager.default.copyItem(atPath: golden + "/folder.key", toPath: folder.root + "/folder.key")

    try await Golden.write(GoldenEntry.version1, in: folder)

    let names = folder.entryFiles.map { String($0.dropFirst(folder.root.count)) }
    let files = folder.files(below: golden + "/entries").map { String($0.dropFirst(golden.count)) }
    #expect(names == files && names.count == GoldenEntry.version1.count)
    for name in names { #expect(try file(folder.root + name) == file(golden + name), "\(name)") }
  }

  /// `ETAGERE_GOLDEN=1 swift test --filter GoldenTests` creates the folder of a new version. An existing folder is never written
  /// again, because it represents existing caches.
  @Test(
    "the folder of a new version is created on request",
    .enabled(if: ProcessInfo.processInfo.environment["ETAGERE_GOLDEN"] != nil))
  func makes() async throws {
    let target = Golden.folder(Golden.current)
    try #require(!fileExists(target), "the golden files of version \(Golden.current) exist and must not change")
    let folder = try TemporaryFolder()
    try await Golden.write(GoldenEntry.version1, in: folder)
    try FileManager.default.createDirectory(atPath: target + "/etagere-1", withIntermediateDirectories: true)
    for name in ["folder.key", "entries"] {
      try FileManager.default.copyItem(atPath: "\(folder.root)/\(name)", toPath: "\(target)/etagere-1/\(name)")
    }
  }
}
