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

@Suite("SQLite store: databases of a later version and of other programs")
struct LaterVersionTests {
  private let folder: TemporaryFolder
  private let key = CacheKey(resource: "https://example.com/later")

  init() throws { folder = try TemporaryFolder() }

  /// Opens a connection that waits for the transactions of a cache.
  private func connect(_ folder: TemporaryFolder) throws -> DatabaseQueue {
    var patient = GRDB.Configuration()
    patient.busyMode = .timeout(86_400)
    return try DatabaseQueue(path: folder.database, configuration: patient)
  }

  private func change(_ sql: String) throws {
    let queue = try connect(folder)
    try queue.writeWithoutTransaction { try $0.execute(sql: sql) }
    try queue.close()
  }

  @Test(
    "a database of another version is refused with both versions, and nothing in its folder changes", arguments: [2, 700, 0, -1])
  func refused(version: Int) async throws {
    try Golden.copy(1, to: folder)
    try change("PRAGMA user_version = \(version); CREATE TABLE later (bytes BLOB)")
    let before = try FolderContents(of: folder.path)
    let error = await failure { _ = try SQLiteCache(path: folder.path) }
    #expect(error?.code == .unsupported && error?.path == folder.database)
    #expect(error?.reason == "the database has version \(version), but this store supports only version 1")
    #expect(try FolderContents(of: folder.path) == before)
  }

  @Test(
    "a database of another program is refused, and nothing in its folder changes",
    arguments: [
      "PRAGMA application_id = 7", "PRAGMA application_id = 0", "PRAGMA journal_mode = DELETE; PRAGMA application_id = 1",
    ])
  func foreign(marker: String) async throws {
    try Golden.copy(1, to: folder)
    try change(marker)
    let before = try FolderContents(of: folder.path)
    let error = await failure { _ = try SQLiteCache(path: folder.path) }
    #expect(error?.code == .unsupported && error?.reason == "the database belongs to another program")
    #expect(try FolderContents(of: folder.path) == before)
  }

  @Test("a small database of another program, without a number of its own, is refused and not changed")
  func unmarked() async throws {
    try change("CREATE TABLE note (text TEXT); INSERT INTO note VALUES ('mine')")
    let before = try FolderContents(of: folder.path)
    #expect(await failure { _ = try SQLiteCache(path: folder.path) }?.code == .unsupported)
    #expect(try FolderContents(of: folder.path) == before)
  }

  @Test("a version that is only in the log is refused, and neither a running nor a killed process of that version loses anything")
  func log() async throws {
    try Golden.copy(1, to: folder)
    let later = try DatabasePool(path: folder.database)
    try await later.writeWithoutTransaction { database in
      try database.execute(
        sql: "PRAGMA wal_autocheckpoint = 0; PRAGMA user_version = 2; CREATE TABLE later (id); INSERT INTO later VALUES (7)")
    }
    func files() throws -> [Data] {
      try ["", "-wal"].map { try Data(contentsOf: URL(filePath: folder.database + $0)) }
    }
    let before = try files()
    let killed = try TemporaryFolder()
    for (suffix, data) in zip(["", "-wal"], before) { try data.write(to: URL(filePath: killed.database + suffix)) }

    for folder in [folder, killed] {
      let error = await failure { _ = try SQLiteCache(path: folder.path) }
      #expect(error?.code == .unsupported && error?.reason.contains("version 2") == true)
    }

    #expect(try files() == before)
    try later.close()
    let restarted = try connect(killed)
    #expect(try await restarted.read { try Int.fetchAll($0, sql: "SELECT id FROM later") } == [7])
    #expect(try await restarted.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM entry WHERE until IS NULL") } == 16)
    try restarted.close()
  }

  @Test("the databases of two versions in one folder do not change each other")
  func otherFile() async throws {
    try Golden.copy(1, to: folder)
    try change("PRAGMA user_version = 2")
    let later = folder.path + "/etagere-2.sqlite"
    try FileManager.default.moveItem(atPath: folder.database, toPath: later)
    let before = try Data(contentsOf: URL(filePath: later))
    let cache = try SQLiteCache(path: folder.path)
    try await cache.store(bytes(300_000), for: key, metadata: metadata())
    try await cache.removeAll()
    await cache.close()
    #expect(try Data(contentsOf: URL(filePath: later)) == before)
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() == ["etagere-1.sqlite", "etagere-2.sqlite"])
  }

  @Test("a later version may add tables, columns, indices and parts of the metadata while this version uses the database")
  func sideBySide() async throws {
    let cache = try Golden.opened(1, in: folder)
    let entries = GoldenEntry.version1
    #expect(try await GoldenEntry.differences(entries, in: cache) == [])
    // When
    try change(
      """
      ALTER TABLE entry ADD COLUMN origin TEXT DEFAULT 'unknown'; ALTER TABLE chunk ADD COLUMN later;
      ALTER TABLE total ADD COLUMN later INTEGER DEFAULT 5; ALTER TABLE secret ADD COLUMN later;
      CREATE INDEX later_length ON entry (length); CREATE TABLE later (id); INSERT INTO later VALUES (7);
      """)
    try addMetadata()
    // Then
    let other = try folder.sharedCache(clock: ManualClock(now: GoldenEntry.end))
    for cache in [cache, other] { #expect(try await GoldenEntry.differences(entries, in: cache) == []) }
    let (first, unknown) = (entries[0], Self.unknown)
    #expect(try await cache.updateMetadata(of: first.key, to: first.metadata, ifRevision: first.metadata.revision))
    let queue = try connect(folder)
    let left = try await queue.read { database in
      try Data.fetchAll(database, sql: "SELECT metadata FROM entry").count { $0.contains(unknown) }
    }
    #expect(left == entries.count - 1, "an update drops unknown parts")
    #expect(try await GoldenEntry.differencesAfterChanges(entries, in: cache) == [])
    try await other.store(bytes(300_000), for: key, metadata: metadata(at: GoldenEntry.end))
    #expect(try await cache.bytes(key) == bytes(300_000))
    try change("UPDATE total SET bytes = 9223372036854775807")
    #expect(try await cache.trim(to: 400_000) == 0, "a damaged total is counted again")
    try await cache.removeAll()
    #expect(try await other.entryCount == 0)
    for cache in [cache, other] { await cache.close() }
    #expect(try await queue.read { try Int.fetchAll($0, sql: "SELECT id FROM later") } == [7])
    try queue.close()
  }

  /// A part of metadata that this version does not know.
  private static let unknown = Data([200, 3, 0, 0, 0, 1, 2, 3])

  /// Adds unknown parts to the metadata of all entries.
  private func addMetadata() throws {
    let queue = try connect(folder)
    try queue.write { database in
      for row in try Row.fetchAll(database, sql: "SELECT \(EntryRow.columns) FROM entry WHERE until IS NULL") {
        let (entry, old) = (try #require(EntryRow(row)), try #require(row.data(4)))
        let payload = old.prefix(1) + Self.unknown + old.dropFirst() + Self.unknown
        let checksum = EntryRow.checksum(entry.key, payload, entry.metadata.revision, entry.length)
        try database.execute(
          sql: "UPDATE entry SET metadata = ?, checksum = ? WHERE id = ?", arguments: [payload, checksum, entry.id])
      }
    }
    try queue.close()
  }
}
#endif
