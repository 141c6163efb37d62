#if SQLite
import CacheCore
import CacheTesting
import GRDB
import SQLiteStore
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("SQLite store: several caches on one database")
struct SharingTests {
  private let clock = ManualClock()
  private let key = CacheKey(resource: "https://example.com/a")

  @Test("caches immediately see each other's entries, removals and total")
  func seen() async throws {
    let folder = try TemporaryFolder()
    let (one, two) = (try folder.sharedCache(), try folder.sharedCache())
    try await one.store(Data("kept".utf8), for: key, metadata: metadata())
    #expect(try await two.bytes(key) == Data("kept".utf8))
    #expect(try await one.totalSize == two.totalSize)
    try await two.remove(key, ifRevision: nil)
    #expect(try await one.entry(for: key) == nil)
    #expect(one.digestSecret == two.digestSecret)
    #expect(one.id == two.id)
    await one.close()
    await two.close()
  }

  @Test("a stored entry is found after a restart")
  func restart() async throws {
    let folder = try TemporaryFolder()
    let one = try SQLiteCache(path: folder.path)
    let data = bytes(700_000)
    let stored = try await one.store(data, for: key, metadata: metadata(padding: 1_000))
    await one.close()
    let two = try SQLiteCache(path: folder.path)
    #expect(try await two.bytes(key) == data)
    #expect(try await two.entry(for: key)?.metadata == stored)
    await two.close()
  }

  @Test("the reader of a large body continues for at least a minute after another cache replaces it")
  func heldAcross() async throws {
    let folder = try TemporaryFolder()
    let (one, two) = (try folder.sharedCache(clock: clock), try folder.sharedCache(clock: clock))
    let data = bytes(1_000_000)
    try await one.store(data, for: key, metadata: metadata(at: clock.now))
    let held = try #require(await one.entry(for: key)).body

    try await two.store(bytes(1_000_000, seed: 2), for: key, metadata: metadata(at: clock.now))
    clock.advance(by: .seconds(59))
    try await two.store(Data(), for: CacheKey(resource: "other"), metadata: metadata(at: clock.now))
    #expect(try await held.collect() == data)
    await one.close()
    await two.close()
  }

  @Test("the bytes of a removed body are deleted after a minute, but not while this cache reads them")
  func collected() async throws {
    let folder = try TemporaryFolder()
    let cache = try SQLiteCache(path: folder.path, configuration: .init(clock: clock))
    let data = bytes(1_000_000)
    try await cache.store(data, for: key, metadata: metadata(at: clock.now))
    var held = try await cache.entry(for: key)?.body
    try await cache.removeAll()
    clock.advance(by: .seconds(61))
    try await cache.store(Data(), for: key, metadata: metadata(at: clock.now))
    #expect(try await held?.collect() == data)

    held = nil
    try await cache.unpinned()
    try await cache.store(Data(), for: key, metadata: metadata(at: clock.now))
    await cache.close()
    let pieces = try await DatabaseQueue(path: folder.database).read { try Int.fetchOne($0, sql: "SELECT count(*) FROM chunk") }
    #expect(pieces == 0)
  }

  @Test("a dead process's partial entry is not found, and is removed when it is old")
  func deadWriter() async throws {
    let folder = try TemporaryFolder()
    // A separate connection with a writer that is never ended, as a killed process leaves it.
    let dead = try folder.sharedCache(clock: clock)
    let writer = try await dead.makeWriter(for: key, metadata: metadata(at: clock.now))
    try await writer.write(bytes(1_000_000))

    let cache = try folder.sharedCache(clock: clock)
    #expect(try await cache.entry(for: key) == nil)
    #expect(try await cache.totalSize == 0)
    clock.advance(by: .seconds(599))
    try await cache.store(Data("a".utf8), for: key, metadata: metadata(at: clock.now))
    #expect(try await rows(folder) == 2)
    clock.advance(by: .seconds(2))
    try await cache.store(Data("b".utf8), for: key, metadata: metadata(at: clock.now))
    #expect(try await rows(folder) == 1)
    // The writer is in fact alive. It gets an error, and its entry does not appear with half of its bytes.
    #expect(await failure { _ = try await writer.commit(trailers: nil) }?.code == .truncatedBody)
    #expect(try await cache.bytes(key) == Data("b".utf8))
    await cache.close()
    await dead.close()
  }

  private func rows(_ folder: TemporaryFolder) async throws -> Int? {
    try await DatabaseQueue(path: folder.database).read { try Int.fetchOne($0, sql: "SELECT count(*) FROM entry") }
  }

  @Test("a database that another process has locked causes an error after the timeout, and reads continue")
  func busy() async throws {
    let folder = try TemporaryFolder()
    let cache = try SQLiteCache(path: folder.path, configuration: .init(busyTimeout: .milliseconds(1)))
    try await cache.store(Data("kept".utf8), for: key, metadata: metadata())
    var patient = Configuration()
    patient.busyMode = .timeout(60)
    patient.allowsUnsafeTransactions = true
    let other = try DatabaseQueue(path: folder.database, configuration: patient)
    try await other.writeWithoutTransaction { try $0.beginTransaction(.immediate) }

    let error = await failure { try await cache.store(Data(), for: CacheKey(resource: "b"), metadata: metadata()) }
    #expect(error?.code == .timedOut)
    #expect(error?.path == cache.path)
    #expect(try await cache.bytes(key) == Data("kept".utf8))

    try await other.writeWithoutTransaction { try $0.rollback() }
    try await cache.store(Data(), for: CacheKey(resource: "b"), metadata: metadata())
    await cache.close()
  }

  @Test("concurrent writers in two caches each store their own entry, and the total is correct")
  func hammer() async throws {
    let folder = try TemporaryFolder()
    let caches = try (0..<2).map { _ in try folder.sharedCache() }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for index in 0..<40 {
        group.addTask {
          let key = CacheKey(resource: "\(index % 10)")
          try await caches[index % 2].store(bytes(150_000, seed: UInt64(index)), for: key, metadata: metadata())
        }
      }
      try await group.waitForAll()
    }
    for index in 0..<10 {
      let read = try await caches[index % 2].bytes(CacheKey(resource: "\(index)"))
      #expect([0, 10, 20, 30].contains { read == bytes(150_000, seed: UInt64(index + $0)) })
    }
    #expect(try await caches[0].entryCount == 10)
    for cache in caches { await cache.close() }
  }
}
#endif
