#if SQLite
import CacheCore
import CacheTesting
import GRDB
import GoldenEntries
import Testing

@testable import SQLiteStore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The databases that earlier versions have written, in `Tests/Support/Golden` (`sqlite-1` and so on).
enum Golden {
  /// The version that is written now.
  static let current = 1

  static func database(_ version: Int) -> String { GoldenFiles.path("sqlite-\(version)") + "/etagere-\(version).sqlite" }

  static func copy(_ version: Int, to folder: TemporaryFolder) throws {
    try FileManager.default.copyItem(atPath: database(version), toPath: folder.database)
  }

  /// Opens a copy, at a time when none of its entries has expired.
  static func opened(_ version: Int, in folder: TemporaryFolder) throws -> SQLiteCache {
    try copy(version, to: folder)
    return try folder.sharedCache(clock: ManualClock(now: GoldenEntry.end))
  }

  /// Writes entries as this version does, and a large one that is removed, whose body stays in the database for a minute.
  static func write(_ entries: [GoldenEntry], in folder: TemporaryFolder) async throws {
    let clock = ManualClock(now: GoldenEntry.start)
    let cache = try folder.sharedCache(clock: clock)
    try await GoldenEntry.write(entries, to: cache, clock)
    let large = try #require(entries.first { $0.body.count > SQLiteEngine.inMemoryBodyLimit })
    let removed = CacheKey(resource: "https://example.com/removed")
    try await cache.store(large.body, for: removed, metadata: large.stored)
    try await cache.remove(removed, ifRevision: nil)
    await cache.close()
  }

  /// Everything in a database that is not open, except its secret and the arrangement of its pages.
  struct Contents: Equatable {
    var settings: [String: DatabaseValue] = [:]
    var tables: [String: [Row]] = [:]

    init(of path: String) throws {
      let queue = try DatabaseQueue(path: path)
      defer { try? queue.close() }
      try queue.read { database in
        for name in ["application_id", "user_version", "page_size", "auto_vacuum", "journal_mode"] {
          settings[name] = try DatabaseValue.fetchOne(database, sql: "PRAGMA \(name)")
        }
        let schema = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name"
        for name in ["entry", "chunk", "total", "sqlite_sequence", "(\(schema))"] {
          tables[name] = try Row.fetchAll(database, sql: "SELECT * FROM \(name) ORDER BY 1, 2")
        }
      }
    }

    func count(_ name: String) -> Int { tables[name]?.count ?? 0 }
  }
}

@Suite("Golden files: databases that an earlier version has written")
struct GoldenTests {
  private let entries = GoldenEntry.version1

  @Test("every entry is read byte for byte and field for field, by each kind of lookup")
  func reads() async throws {
    let folder = try TemporaryFolder()
    let cache = try Golden.opened(1, in: folder)
    #expect(try await GoldenEntry.differences(entries, in: cache) == [])
    #expect(try await cache.entryCount == entries.count)
    #expect(cache.counters.damaged == 0 && cache.counters.resets == 0)
    await cache.close()
  }

  @Test("the body of a removed entry, which had a minute for its readers, is removed after that time")
  func removed() async throws {
    let folder = try TemporaryFolder()
    try Golden.copy(1, to: folder)
    #expect(try Golden.Contents(of: folder.database).count("entry") == entries.count + 1)
    let cache = try folder.sharedCache(clock: ManualClock(now: GoldenEntry.end))
    try await cache.collected()
    await cache.close()
    let contents = try Golden.Contents(of: folder.database)
    #expect(contents.count("entry") == entries.count)
    #expect(contents.count("chunk") == entries.reduce(0) { $0 + ($1.body.count + 65_535) / 65_536 })
  }

  @Test("the times of the last uses are known, and the least recently used entries are evicted first")
  func evicts() async throws {
    let folder = try TemporaryFolder()
    let cache = try Golden.opened(1, in: folder)
    for count in (0..<entries.count).reversed() {
      #expect(try await cache.trim(to: cache.totalSize - 1) == 1)
      #expect(try await Set(cache.entries().map(\.key)) == Set(entries.prefix(count).map(\.key)))
    }
    #expect(try await cache.totalSize == 0)
    await cache.close()
  }

  @Test("entries can be updated, replaced and removed")
  func changed() async throws {
    let folder = try TemporaryFolder()
    let cache = try Golden.opened(1, in: folder)
    #expect(try await GoldenEntry.differencesAfterChanges(entries, in: cache) == [])
    #expect(try await cache.totalSize == 0)
    await cache.close()
  }

  @Test("entries can be purged: marked stale, and removed by tag, by key, by name and all at once")
  func purged() async throws {
    let folder = try TemporaryFolder()
    let cache = try Golden.opened(1, in: folder)
    #expect(try await GoldenEntry.differencesAfterPurges(entries, in: cache) == [])
    #expect(try await cache.totalSize == 0)
    await cache.close()
  }

  @Test("this version writes the same tables, settings and rows")
  func writes() async throws {
    let (folder, expected) = (try TemporaryFolder(), try TemporaryFolder())
    try Golden.copy(Golden.current, to: expected)
    try await Golden.write(entries, in: folder)
    #expect(try Golden.Contents(of: folder.database) == Golden.Contents(of: expected.database))
  }

  /// `Scripts/golden` creates the database of a new version. An existing one is never written again, because it represents
  /// existing caches.
  @Test("the database of a new version is created on request", .enabled(if: GoldenFiles.isRequested))
  func makes() async throws {
    let target = Golden.database(Golden.current)
    guard !FileManager.default.fileExists(atPath: target) else { return }
    let folder = try TemporaryFolder()
    try await Golden.write(entries, in: folder)
    try FileManager.default.createDirectory(
      atPath: GoldenFiles.path("sqlite-\(Golden.current)"), withIntermediateDirectories: true)
    try FileManager.default.copyItem(atPath: folder.database, toPath: target)
  }
}
#endif
