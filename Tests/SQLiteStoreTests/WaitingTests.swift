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

@Suite("What waits for a database's only writer")
struct WaitingTests {
  private let clock = ManualClock()
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func key(_ number: Int) -> CacheKey { CacheKey(resource: "https://example.com/\(number)") }

  @Test("a look does not: what it finds expired or damaged is a miss at once, and removed afterwards", .timeLimit(.minutes(10)))
  func looks() async throws {
    // Given
    let cache = try SQLiteCache(path: folder.path, configuration: .init(expiration: .after(.seconds(60)), clock: clock))
    try await cache.store(bytes(100), for: key(1), metadata(at: clock.now, expiration: .never))
    try await cache.engine.file.write { database, _ in try database.execute(sql: "UPDATE chunk SET checksum = checksum + 1") }
    try await cache.store(bytes(100), for: key(2), metadata(at: clock.now))
    try await cache.store(bytes(100), for: key(3), metadata(at: clock.now, expiration: .never))
    clock.advance(by: .seconds(60))
    let held = await HeldConnection(of: cache)

    // When
    let found = Lock<[Bool]>([])
    Task {
      for number in 1...3 {
        let isFound = try await cache.open(key(number)) != nil
        found.withLock { $0.append(isFound) }
      }
    }
    try await Turns.until { found.withLock { $0.count == 3 } }

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

  @Test("what is found to clear away when the store is closed is cleared away before", .timeLimit(.minutes(10)))
  func closing() async throws {
    let cache = try SQLiteCache(path: folder.path, configuration: .init(expiration: .after(.seconds(60)), clock: clock))
    try await cache.store(bytes(100), for: key(1), metadata(at: clock.now))
    clock.advance(by: .seconds(60))
    #expect(try await cache.open(key(1)) == nil)
    await cache.close()
    #expect(cache.counters.evictions == [.expired: 1])
  }
}
#endif
