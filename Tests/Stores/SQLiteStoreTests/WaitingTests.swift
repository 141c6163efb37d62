#if SQLite
import CacheCore
import CacheTesting
import GRDB
import Testing

@testable import SQLiteStore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("SQLite store: operations that wait for the writing connection")
struct WaitingTests {
  private let clock = ManualClock()
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func key(_ number: Int) -> CacheKey { CacheKey(resource: "https://example.com/\(number)") }

  @Test("a lookup does not wait: an expired or damaged entry is a miss immediately, and removed later", .timeLimit(.minutes(30)))
  func looks() async throws {
    // Given
    let cache = try SQLiteCache(path: folder.path, configuration: .init(expiration: .after(.seconds(60)), clock: clock))
    try await cache.store(bytes(100), for: key(1), metadata: metadata(at: clock.now, expiration: .never))
    try await cache.engine.file.write { database, _ in try database.execute(sql: "UPDATE chunk SET checksum = checksum + 1") }
    try await cache.store(bytes(100), for: key(2), metadata: metadata(at: clock.now))
    try await cache.store(bytes(100), for: key(3), metadata: metadata(at: clock.now, expiration: .never))
    clock.advance(by: .seconds(60))
    let held = await HeldConnection(of: cache)

    // When
    let found = Lock<[Bool]>([])
    Task {
      for number in 1...3 {
        let isFound = try await cache.entry(for: key(number)) != nil
        found.withLock { $0.append(isFound) }
      }
    }
    try await Polling.until { found.withLock { $0.count == 3 } }

    // Then
    #expect(found.withLock { $0 } == [false, false, true])
    #expect(cache.counters.damaged == 1)
    #expect(cache.counters.evictions.isEmpty)
    try await held.release()
    await cache.cleared()
    #expect(cache.counters.evictions == [.expired: 1])
    #expect(try await cache.entries { _, _ in true }.map(\.key) == [key(3)])
    await cache.close()
  }

  @Test("the entries found to be removed are removed before the store is closed", .timeLimit(.minutes(30)))
  func closing() async throws {
    let cache = try SQLiteCache(path: folder.path, configuration: .init(expiration: .after(.seconds(60)), clock: clock))
    try await cache.store(bytes(100), for: key(1), metadata: metadata(at: clock.now))
    clock.advance(by: .seconds(60))
    #expect(try await cache.entry(for: key(1)) == nil)
    await cache.close()
    #expect(cache.counters.evictions == [.expired: 1])
  }

  @Test("stores beyond the limit are refused and counted until the disk has caught up", .timeLimit(.minutes(30)))
  func count() async throws {
    // Given
    let cache = try SQLiteCache(path: folder.path, configuration: .init(pendingLimit: 4))
    let stored = try await cache.store(bytes(10), for: key(0), metadata: metadata())
    let early = try await cache.makeWriter(for: key(9), metadata: metadata())
    let held = await HeldConnection(of: cache)
    let stores = (1...4).map { number in Task { try await cache.store(bytes(10), for: key(number), metadata: metadata()) } }
    try await Polling.until { !cache.engine.backlog.hasCapacity }

    // When
    let refusals = [
      await failure { _ = try await cache.makeWriter(for: key(5), metadata: metadata()) },
      await failure { _ = try await early.commit(trailers: nil) },
      await failure { _ = try await cache.updateMetadata(of: key(0), to: stored, ifRevision: stored.revision) },
    ]

    // Then
    #expect(refusals.map { $0?.code } == [.overloaded, .overloaded, .overloaded])
    #expect(cache.counters.refusedWrites == 3)
    #expect(try await cache.bytes(key(0)) == bytes(10))
    let removal = Task { try await cache.remove(key(0), ifRevision: stored.revision) }
    try await held.release()
    for store in stores { _ = try await store.value }
    try await removal.value
    #expect(try await cache.entryCount == 4)
    #expect(cache.counters.writes == 5 && cache.counters.failedWrites == 0)
    try await cache.store(bytes(20), for: key(9), metadata: metadata())
    #expect(cache.counters.refusedWrites == 3)
    await cache.close()
  }

  @Test("pending bytes are bounded except for a single large chunk", .timeLimit(.minutes(30)))
  func size() async throws {
    // Given
    let cache = try SQLiteCache(path: folder.path, configuration: .init(pendingSizeLimit: 100_000))
    try await cache.store(bytes(300_000), for: key(1), metadata: metadata())
    let writers = try await [
      cache.makeWriter(for: key(2), metadata: metadata()), cache.makeWriter(for: key(3), metadata: metadata()),
      cache.makeWriter(for: key(4), metadata: metadata()),
    ]
    for (writer, size) in zip(writers, [60_000, 60_000, 40_000]) { try await writer.write(bytes(size)) }
    let held = await HeldConnection(of: cache)

    // When
    let first = Task { try await writers[0].commit(trailers: nil) }
    try await Polling.until { !cache.engine.backlog.hasCapacity(for: 60_000) }
    let refusal = await failure { _ = try await writers[1].commit(trailers: nil) }
    // A store that fits beside it is accepted.
    let last = Task { try await writers[2].commit(trailers: nil) }
    try await Polling.until { !cache.engine.backlog.hasCapacity }

    // Then
    #expect(refusal?.code == .overloaded)
    try await held.release()
    _ = try await first.value
    _ = try await last.value
    try await cache.store(bytes(300_000), for: key(3), metadata: metadata())
    #expect(cache.counters.refusedWrites == 1)
    await cache.close()
  }

  @Test("invalid limits are refused", arguments: [(0, 1), (1, -1)])
  func invalid(count: Int, bytes: Int) throws {
    let configuration = SQLiteCache.Configuration(pendingLimit: count, pendingSizeLimit: bytes)
    let error = #expect(throws: CacheError.self) { try SQLiteCache(path: folder.path, configuration: configuration) }
    #expect(error?.code == .invalidConfiguration)
  }
}
#endif
