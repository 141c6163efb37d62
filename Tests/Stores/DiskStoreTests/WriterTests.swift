import CacheCore
import DiskStore
import HTTPTypes
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Disk store: writers")
struct WriterTests {
  let folder: TemporaryFolder
  let cache: DiskCache
  let key = CacheKey(resource: "r")

  init() throws {
    folder = try TemporaryFolder()
    cache = try DiskCache(path: folder.path)
  }

  @Test("an entry is invisible before its commit and complete after it", arguments: [100, 500_000])
  func atomicity(length: Int) async throws {
    let writer = try await cache.makeWriter(for: key, metadata: metadata())
    try await writer.write(bytes(length))
    #expect(try await cache.bytes(key) == nil)
    #expect(try await cache.variants(of: "r").isEmpty)
    #expect(folder.entryFiles.isEmpty)
    _ = try await writer.commit(trailers: nil)
    #expect(try await cache.bytes(key) == bytes(length))
    #expect(folder.temporaryFiles.isEmpty)
  }

  @Test("an aborted writer leaves nothing behind, and throws", arguments: [100, 300_000])
  func abort(length: Int) async throws {
    let writer = try await cache.makeWriter(for: key, metadata: metadata())
    try await writer.write(bytes(length))
    writer.abort()
    #expect(await failure { try await writer.write(bytes(1)) }?.code == .truncatedBody)
    #expect(await failure { _ = try await writer.commit(trailers: nil) }?.code == .truncatedBody)
    #expect(try await cache.bytes(key) == nil)
    await cache.close()
    #expect(folder.temporaryFiles.isEmpty)
  }

  @Test("a writer that is released aborts", arguments: [100, 300_000])
  func dropped(length: Int) async throws {
    var writer: (any EntryWriter)? = try await cache.makeWriter(for: key, metadata: metadata())
    try await writer?.write(bytes(length))
    writer = nil
    await cache.close()
    #expect(folder.temporaryFiles.isEmpty)
    #expect(folder.entryFiles.isEmpty)
  }

  @Test("after the commit, writing throws and aborting does nothing")
  func afterCommit() async throws {
    let writer = try await cache.makeWriter(for: key, metadata: metadata())
    try await writer.write(bytes(10))
    _ = try await writer.commit(trailers: nil)
    #expect(await failure { try await writer.write(bytes(10)) }?.code == .misuse)
    #expect(await failure { _ = try await writer.commit(trailers: nil) }?.code == .misuse)
    writer.abort()
    #expect(try await cache.bytes(key) == bytes(10))
  }

  @Test("with two writers of one entry, the last commit wins and nothing is mixed")
  func twoWriters() async throws {
    let one = try await cache.makeWriter(for: key, metadata: metadata())
    let two = try await cache.makeWriter(for: key, metadata: metadata())
    for round in 0..<4 {
      try await one.write(bytes(90_000, seed: 10 + UInt64(round)))
      try await two.write(bytes(90_000, seed: 20 + UInt64(round)))
    }
    _ = try await two.commit(trailers: nil)
    _ = try await one.commit(trailers: nil)
    #expect(try await cache.bytes(key) == (0..<4).reduce(Data()) { $0 + bytes(90_000, seed: 10 + UInt64($1)) })
  }

  @Test("removing all entries spares later stores and writers that commit later")
  func removeAll() async throws {
    try await cache.store(bytes(10), for: CacheKey(resource: "old"), metadata: metadata())
    let small = try await cache.makeWriter(for: CacheKey(resource: "small"), metadata: metadata())
    let large = try await cache.makeWriter(for: CacheKey(resource: "large"), metadata: metadata())
    try await small.write(bytes(10))
    try await large.write(bytes(200_000))
    try await cache.removeAll()
    #expect(try await cache.bytes(CacheKey(resource: "old")) == nil)
    #expect(try await cache.totalSize == 0)
    try await cache.store(bytes(20), for: CacheKey(resource: "new"), metadata: metadata())
    _ = try await small.commit(trailers: nil)
    _ = try await large.commit(trailers: nil)
    #expect(try await cache.bytes(CacheKey(resource: "new")) == bytes(20))
    #expect(try await cache.bytes(CacheKey(resource: "small")) == bytes(10))
    #expect(try await cache.bytes(CacheKey(resource: "large")) == bytes(200_000))
    #expect(try await cache.entryCount == 3)
    #expect(folder.temporaryFiles.isEmpty)
  }

  @Test("a body above the limit is refused, by its stated length or while it is written")
  func tooLarge() async throws {
    let cache = try DiskCache(path: folder.path, configuration: .init(entrySizeLimit: 100_000))
    var stated = metadata()
    stated.bodyLength = 100_001
    #expect(await failure { _ = try await cache.makeWriter(for: key, metadata: stated) }?.code == .entryTooLarge)
    let writer = try await cache.makeWriter(for: key, metadata: metadata())
    try await writer.write(bytes(90_000))
    #expect(await failure { try await writer.write(bytes(10_001)) }?.code == .entryTooLarge)
    try await cache.store(bytes(100_000), for: key, metadata: metadata())
    #expect(try await cache.bytes(key)?.count == 100_000)
    await cache.close()
    #expect(folder.temporaryFiles.isEmpty)
  }

  @Test("metadata above the limit is refused")
  func metadataTooLarge() async throws {
    #expect(
      await failure { try await cache.store(bytes(1), for: key, metadata: metadata(padding: 5 << 20)) }?.code == .entryTooLarge)
    let stored = try await cache.store(bytes(1), for: key, metadata: metadata())
    let large = metadata(revision: stored.revision, padding: 5 << 20)
    #expect(
      await failure { _ = try await cache.updateMetadata(of: key, to: large, ifRevision: stored.revision) }?.code
        == .entryTooLarge)
    #expect(try await cache.bytes(key) == bytes(1))
  }

  @Test("a closed store finishes the work in progress and then refuses every call")
  func close() async throws {
    try await cache.store(bytes(1_000_000), for: key, metadata: metadata())
    let entry = try #require(try await cache.entry(for: key))
    let writer = try await cache.makeWriter(for: CacheKey(resource: "late"), metadata: metadata())
    try await writer.write(bytes(200_000))
    await cache.close()
    #expect(await failure { _ = try await cache.entry(for: key) }?.code == .closed)
    #expect(await failure { _ = try await cache.variants(of: "r") }?.code == .closed)
    #expect(await failure { _ = try await cache.makeWriter(for: key, metadata: metadata()) }?.code == .closed)
    #expect(await failure { _ = try await cache.updateMetadata(of: key, to: metadata(), ifRevision: .random()) }?.code == .closed)
    #expect(await failure { try await cache.remove(key, ifRevision: nil) }?.code == .closed)
    #expect(await failure { try await cache.removeAll() }?.code == .closed)
    #expect(await failure { _ = try await cache.totalSize }?.code == .closed)
    #expect(await failure { _ = try await cache.entries() }?.code == .closed)
    #expect(await failure { _ = try await writer.commit(trailers: nil) }?.code == .closed)
    #expect(await failure { _ = try await entry.body.collect() }?.code == .closed)
    await cache.close()
    #expect(folder.temporaryFiles.isEmpty)
    #expect(try await DiskCache(path: folder.path).bytes(key) == bytes(1_000_000))
  }

  @Test("a cancelled task's store is complete or missing")
  func cancelledTask() async throws {
    for round in 0..<30 {
      let key = CacheKey(resource: "\(round)")
      let task = Task { try await cache.store(bytes(150_000, seed: 6), for: key, metadata: metadata()) }
      task.cancel()
      _ = await task.result
      let read = try await cache.bytes(key)
      #expect(read == nil || read == bytes(150_000, seed: 6))
    }
    #expect(try await cache.verify().isClean)
  }
}
