#if SQLite
import CacheCore
import SQLiteStore

/// Two SQLite caches on one database.
struct SQLiteSubject: Subject {
  private let path: String
  private let limit: Int64?
  private let clock: any CacheClock
  private var caches: [SQLiteCache] = []

  init(_ path: String, limit: Int64?, _ clock: any CacheClock) throws {
    (self.path, self.limit, self.clock) = (path, limit, clock)
    try open()
  }

  private mutating func open() throws {
    caches = try (0..<2).map { _ in try SQLiteCache(path: path, configuration: .init(sizeLimit: limit, clock: clock)) }
  }

  var name: String { "SQLiteCache, two on one database" }

  var stores: [any CacheStore] { caches }

  mutating func reopen() async throws {
    try await close()
    try open()
  }

  func trim(to size: Int64) async throws -> Int? { try await caches[0].trim(to: size) }

  func removeExpired() async throws { _ = try await caches[1].removeExpired() }

  func count() async throws -> Int? { try await caches[0].entryCount }

  func close() async throws { for cache in caches { await cache.close() } }
}
#endif
