import CacheCore
import DiskStore
import HTTPTypes
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Disk store: metadata updates")
struct MetadataUpdateTests {
  let folder: TemporaryFolder
  let cache: DiskCache
  let key = CacheKey(resource: "r")

  init() throws {
    folder = try TemporaryFolder()
    cache = try folder.sharedCache()
  }

  private var entryPath: String { folder.entryFiles[0] }

  @Test("a 304's metadata replaces the old metadata without rewriting the body", arguments: [0, 30_000, 400_000])
  func refresh(length: Int) async throws {
    let body = bytes(length)
    let stored = try await cache.store(body, for: key, metadata: metadata(etag: "\"old\""))
    let before = try file(entryPath)
    var fresh = metadata(revision: stored.revision, etag: "\"new\"", at: Timestamp(seconds: 1_800_000_000))
    #expect(try await cache.updateMetadata(of: key, to: fresh, ifRevision: stored.revision))
    fresh.bodyLength = Int64(length)
    for reader in [cache, try folder.sharedCache()] {
      let entry = try #require(try await reader.entry(for: key))
      #expect(entry.metadata == fresh)
      #expect(try await entry.body.collect() == body)
      #expect(try await reader.variants(of: "r").map(\.metadata) == [fresh])
    }
    let after = try file(entryPath)
    #expect(after.starts(with: before))
    #expect(after.count - before.count == 512)
  }

  @Test("an entry that is missing or has another revision is not updated")
  func wrongRevision() async throws {
    #expect(try await cache.updateMetadata(of: key, to: metadata(), ifRevision: .random()) == false)
    let stored = try await cache.store(bytes(9), for: key, metadata: metadata())
    #expect(try await cache.updateMetadata(of: key, to: metadata(), ifRevision: .random()) == false)
    #expect(try await cache.entry(for: key)?.metadata == stored)
    try await cache.remove(key, ifRevision: nil)
    #expect(try await cache.updateMetadata(of: key, to: stored, ifRevision: stored.revision) == false)
  }

  @Test("metadata with another revision or length is stored under the entry's own")
  func ownRevision() async throws {
    let stored = try await cache.store(bytes(9), for: key, metadata: metadata())
    var other = metadata(etag: "\"new\"")
    other.bodyLength = 5
    #expect(try await cache.updateMetadata(of: key, to: other, ifRevision: stored.revision))
    let entry = try #require(try await cache.entry(for: key))
    #expect(entry.metadata.revision == stored.revision)
    #expect(entry.metadata.bodyLength == 9)
    #expect(entry.metadata.response.headerFields[.eTag] == "\"new\"")
  }

  @Test("a file that is updated repeatedly stays bounded, and its last metadata is current", arguments: [0, 900, 12_000])
  func bounded(padding: Int) async throws {
    let stored = try await cache.store(bytes(1000), for: key, metadata: metadata(padding: padding))
    var largest = 0
    for round in 0..<300 {
      let fresh = metadata(revision: stored.revision, etag: "\"\(round)\"", padding: (padding * (round % 3)) / 2)
      #expect(try await cache.updateMetadata(of: key, to: fresh, ifRevision: stored.revision))
      #expect(try await cache.entry(for: key)?.metadata.response.headerFields[.eTag] == "\"\(round)\"")
      largest = max(largest, try file(entryPath).count)
    }
    #expect(largest <= 4096 + max(32_768, 8 * (padding + 1024)))
    #expect(try await cache.bytes(key) == bytes(1000))
    #expect(try await cache.verify().isClean)
    #expect(try await cache.totalSize == folder.allocatedSize)
  }

  @Test("a truncated or damaged record leaves the one before it current")
  func tornRecord() async throws {
    let stored = try await cache.store(bytes(1000), for: key, metadata: metadata(etag: "\"old\""))
    let old = try file(entryPath)
    #expect(
      try await cache.updateMetadata(
        of: key, to: metadata(revision: stored.revision, etag: "\"new\""), ifRevision: stored.revision))
    let new = try file(entryPath)
    for cut in stride(from: old.count, to: new.count, by: 3) {
      try put(new.prefix(cut), entryPath)
      let etag = try await cache.entry(for: key)?.metadata.response.headerFields[.eTag]
      #expect(etag == "\"old\"" || etag == "\"new\"" && new[cut...].allSatisfy { $0 == 0 }, "cut at \(cut)")
    }
    for position in stride(from: old.count, to: old.count + 200, by: 1) {
      var torn = new
      torn[position] ^= 0x10
      try put(torn, entryPath)
      let etag = try await cache.entry(for: key)?.metadata.response.headerFields[.eTag]
      #expect(etag == "\"old\"", "flip at \(position)")
    }
    // The log continues over the torn record.
    #expect(
      try await cache.updateMetadata(of: key, to: metadata(revision: stored.revision, etag: "\"3\""), ifRevision: stored.revision)
    )
    #expect(try await cache.entry(for: key)?.metadata.response.headerFields[.eTag] == "\"3\"")
    #expect(cache.counters.damaged == 0)
  }

  @Test(
    "an intact record remains whichever record is lost while the log wraps",
    arguments: [[3000], [31_000, 2500], [2500, 31_000, 9000, 100]])
  func alwaysOneWhole(paddings: [Int]) async throws {
    let stored = try await cache.store(bytes(100), for: key, metadata: metadata(padding: paddings[0]))
    for round in 0..<60 {
      let before = try file(entryPath)
      let padding = paddings[(round + 1) % paddings.count]
      let fresh = metadata(revision: stored.revision, etag: "\"\(round)\"", padding: padding)
      #expect(try await cache.updateMetadata(of: key, to: fresh, ifRevision: stored.revision))
      let after = try file(entryPath)
      // The bytes of the last write become zero, as if they had never reached the disk.
      var torn = after
      for index in after.indices where index >= before.count || before[index] != after[index] { torn[index] = 0 }
      try put(torn, entryPath)
      let entry = try #require(try await cache.entry(for: key))
      #expect(entry.metadata.response.headerFields[.eTag] == (round == 0 ? "\"a\"" : "\"\(round - 1)\""))
      try put(after, entryPath)
    }
  }

  @Test("a record with another revision is ignored, so server text cannot pose as a record")
  func forgedRecord() async throws {
    let stored = try await cache.store(bytes(100), for: key, metadata: metadata(etag: "\"true\""))
    let other = CacheKey(resource: "other")
    let otherStored = try await cache.store(bytes(100), for: other, metadata: metadata(etag: "\"forged\""))
    #expect(
      try await cache.updateMetadata(
        of: other, to: metadata(revision: otherStored.revision, etag: "\"x\""), ifRevision: otherStored.revision))
    let files = try folder.entryFiles.map { ($0, try file($0)) }.sorted { $0.1.count < $1.1.count }
    try put(files[0].1 + files[1].1.suffix(512), files[0].0)
    #expect(try await cache.entry(for: key)?.metadata == stored)
  }

  @Test("two caches that update one entry concurrently both end with one of the last records")
  func twoCaches() async throws {
    let stored = try await cache.store(bytes(1000), for: key, metadata: metadata())
    let other = try folder.sharedCache()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for (index, cache) in [cache, other, cache, other].enumerated() {
        group.addTask { try await updateMetadata(cache, stored.revision, mark: index) }
      }
      try await group.waitForAll()
    }
    let last = try #require(try await cache.entry(for: key)?.metadata.response.headerFields[.eTag])
    #expect(last.hasSuffix("-99\""))
    #expect(cache.counters.damaged + other.counters.damaged == 0)
  }

  private func updateMetadata(_ cache: DiskCache, _ revision: Revision, mark: Int) async throws {
    for round in 0..<100 {
      let fresh = metadata(revision: revision, etag: "\"\(mark)-\(round)\"")
      #expect(try await cache.updateMetadata(of: key, to: fresh, ifRevision: revision))
      #expect(try await cache.bytes(key) == bytes(1000))
    }
  }
}
