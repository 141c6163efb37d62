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

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

@Suite("SQLite store: a damaged database")
struct DamageTests {
  private let key = CacheKey(resource: "https://example.com/a")

  /// Overwrites a file's bytes with invalid data.
  ///
  /// - Returns: The size of the file.
  private func overwrite(_ path: String, from offset: Int) throws -> Int {
    let size = try Data(contentsOf: URL(filePath: path)).count
    let descriptor = open(path, O_WRONLY)
    defer { close(descriptor) }
    let nonsense = [UInt8](repeating: 0xA5, count: max(0, size - offset))
    #expect(pwrite(descriptor, nonsense, nonsense.count, off_t(offset)) == nonsense.count)
    return size
  }

  /// The configuration of a second connection. The cache may be recording a use.
  private static var patient: GRDB.Configuration {
    var patient = GRDB.Configuration()
    patient.busyMode = .timeout(60)
    return patient
  }

  /// Changes the database without the cache.
  private func tamper(_ folder: TemporaryFolder, _ sql: String) throws {
    try DatabaseQueue(path: folder.database, configuration: Self.patient).write { try $0.execute(sql: sql) }
  }

  @Test(
    "a damaged entry is a miss that is removed and counted, and never wrong bytes",
    arguments: [
      "UPDATE chunk SET bytes = zeroblob(length(bytes)) WHERE place = (SELECT max(place) FROM chunk)",
      "UPDATE chunk SET bytes = x'' WHERE place = (SELECT min(place) FROM chunk)",
      "UPDATE chunk SET checksum = checksum + 1", "UPDATE chunk SET checksum = 'text'", "DELETE FROM chunk",
      "DELETE FROM chunk WHERE place = (SELECT min(place) FROM chunk)",
      "UPDATE entry SET metadata = zeroblob(length(metadata))", "UPDATE entry SET metadata = 'text'",
      "UPDATE entry SET revision = randomblob(16)", "UPDATE entry SET length = length - 1", "UPDATE entry SET length = 'long'",
      "UPDATE entry SET length = -1", "UPDATE entry SET length = 9223372036854775807",
      "UPDATE entry SET id = 9223372036854775807",
      "UPDATE entry SET id = -9223372036854775808", "UPDATE entry SET id = 0", "UPDATE entry SET checksum = 0",
      "UPDATE entry SET transform = x'FF' WHERE 0 = 1; DELETE FROM chunk",
    ])
  func damagedEntry(sql: String) async throws {
    let folder = try TemporaryFolder()
    let cache = try SQLiteCache(path: folder.path)
    try await cache.store(bytes(100_000), for: key, metadata: metadata())
    try tamper(folder, sql)

    #expect(try await cache.entry(for: key) == nil)
    #expect(cache.counters.damaged == 1)
    await cache.cleared()
    #expect(try await cache.entryCount == 0)
    try await cache.store(Data("new".utf8), for: key, metadata: metadata())
    #expect(try await cache.bytes(key) == Data("new".utf8))
    await cache.close()
  }

  @Test("a row whose checksum matches impossible numbers is a miss and is removed", arguments: [1 << 39, Int64.max, .min, -1])
  func impossibleNumbers(number: Int64) async throws {
    let folder = try TemporaryFolder()
    let cache = try SQLiteCache(path: folder.path)
    var entry = metadata()
    entry.bodyLength = max(number, 0)
    let (payload, length, revision) = (entry.encoded(), max(number, 0), entry.revision)
    try await cache.store(bytes(100_000), for: key, metadata: metadata(revision: revision))
    try await DatabaseQueue(path: folder.database, configuration: Self.patient).write { [key] database in
      try database.execute(
        sql: "UPDATE entry SET id = ?, length = ?, metadata = ?, checksum = ?, revision = ?",
        arguments: [
          number, length, payload, EntryRow.checksum(key, payload, revision, length), EntryRow.tag(revision),
        ])
    }
    #expect(try await cache.entry(for: key, range: Int64.max - 1..<Int64.max) == nil)
    #expect(try await cache.variants(of: key.resource).isEmpty)
    await cache.cleared()
    #expect(try await cache.entryCount == 0)
    await cache.close()
  }

  @Test(
    "a damaged total evicts no entry and is counted again",
    arguments: [
      "UPDATE total SET entries = 9223372036854775807, bytes = 9223372036854775807",
      "UPDATE total SET bytes = -9223372036854775808", "DELETE FROM total",
    ])
  func damagedTotal(damage: String) async throws {
    let folder = try TemporaryFolder()
    let cache = try SQLiteCache(path: folder.path, configuration: .init(sizeLimit: 1_000_000))
    try await cache.store(bytes(1_000), for: key, metadata: metadata())
    try tamper(folder, damage)
    for number in 0..<3 {
      try await cache.store(bytes(1_000), for: CacheKey(resource: "\(number)"), metadata: metadata())
    }
    await cache.close()
    // Without a limit, too.
    try tamper(folder, damage)
    let again = try SQLiteCache(path: folder.path)
    for key in [key, CacheKey(resource: "0"), CacheKey(resource: "2")] { #expect(try await again.bytes(key) == bytes(1_000)) }
    #expect(try await again.entryCount == 4)
    #expect(try await (4_000..<10_000).contains(again.totalSize))
    await again.close()
  }

  @Test("a new database and its log are for their owner alone")
  func mode() async throws {
    let folder = try TemporaryFolder()
    let cache = try SQLiteCache(path: folder.path)
    try await cache.store(bytes(5), for: key, metadata: metadata())
    for suffix in ["", "-wal", "-shm"] {
      var status = stat()
      try #require(lstat(folder.database + suffix, &status) == 0)
      #expect(status.st_mode & 0o777 == 0o600, "\(suffix)")
    }
    await cache.close()
  }

  @Test("a database that other users can write to is refused with its path", arguments: ["", "-wal", "-shm"])
  func writableByOthers(suffix: String) async throws {
    let folder = try TemporaryFolder()
    await (try SQLiteCache(path: folder.path)).close()
    let path = folder.database + suffix
    if !suffix.isEmpty { try Data().write(to: URL(filePath: path)) }
    try #require(chmod(path, 0o666) == 0)
    let error = #expect(throws: CacheError.self) { try SQLiteCache(path: folder.path) }
    #expect(error?.path == path && error?.errno == EPERM)
    try #require(chmod(path, 0o600) == 0)
    await (try SQLiteCache(path: folder.path)).close()
  }

  @Test("a row with another key is not found")
  func swappedKey() async throws {
    let folder = try TemporaryFolder()
    let cache = try SQLiteCache(path: folder.path)
    try await cache.store(Data("a".utf8), for: key, metadata: metadata())
    try tamper(folder, "UPDATE entry SET resource = CAST('https://example.com/b' AS BLOB)")
    #expect(try await cache.entry(for: CacheKey(resource: "https://example.com/b")) == nil)
    #expect(try await cache.variants(of: "https://example.com/b").isEmpty)
    await cache.close()
  }

  @Test("damage behind the first chunks of a large body ends the stream with an error and removes the entry")
  func damagedInMidStream() async throws {
    let folder = try TemporaryFolder()
    let cache = try SQLiteCache(path: folder.path)
    let data = bytes(1_000_000)
    try await cache.store(data, for: key, metadata: metadata())
    try tamper(folder, "UPDATE chunk SET bytes = zeroblob(length(bytes)) WHERE place = (SELECT max(place) FROM chunk)")

    let body = try #require(await cache.entry(for: key)).body
    var read = Data()
    let error = await failure { for try await chunk in body { read.append(chunk) } }
    #expect(error?.code == .damagedEntry)
    #expect(read == data.prefix(read.count) && !read.isEmpty)
    #expect(try await cache.entry(for: key) == nil)
    await cache.close()
  }

  @Test(
    "a file that is not a database is created anew when it is opened",
    arguments: ["", "no database at all, but long enough for its head"])
  func noDatabase(content: String) async throws {
    let folder = try TemporaryFolder()
    try Data(String(repeating: content, count: 100).utf8).write(to: URL(filePath: folder.database))
    let cache = try SQLiteCache(path: folder.path)
    try await cache.store(Data("kept".utf8), for: key, metadata: metadata())
    #expect(try await cache.bytes(key) == Data("kept".utf8))
    // An empty file is a new database.
    #expect(cache.counters.resets == (content.isEmpty ? 0 : 1))
    await cache.close()
  }

  @Test("damage found later causes one error, and then the database is new")
  func damagedWhileOpen() async throws {
    let folder = try TemporaryFolder()
    do {
      let cache = try SQLiteCache(path: folder.path)
      for index in 0..<50 {
        try await cache.store(bytes(20_000), for: CacheKey(resource: "\(index)"), metadata: metadata())
      }
      await cache.close()
    }
    let cache = try SQLiteCache(path: folder.path)
    // Otherwise the collection would find the damage first.
    try await cache.collected()
    // Everything but the first page, which has the schema's root. It is changed in place, because another file would be a new
    // database.
    let size = try overwrite(folder.database, from: 8_192)
    #expect(size > 1_000_000)

    let error = await failure { for index in 0..<50 { _ = try await cache.entry(for: CacheKey(resource: "\(index)")) } }
    #expect(error?.code == .damagedEntry)
    #expect(error?.path == cache.path)
    try await cache.store(Data("new".utf8), for: key, metadata: metadata())
    #expect(try await cache.bytes(key) == Data("new".utf8))
    #expect(cache.counters.resets == 1)
    await cache.close()
  }

  @Test("after the file or the folder is deleted, the store continues with a new one", arguments: [false, true])
  func deleted(isFolder: Bool) async throws {
    let folder = try TemporaryFolder()
    let cache = try SQLiteCache(path: folder.path)
    try await cache.store(bytes(400_000), for: key, metadata: metadata())
    let held = try #require(await cache.entry(for: key)).body
    // Otherwise the collection could create a database during the removal.
    try await cache.collected()
    try FileManager.default.removeItem(atPath: isFolder ? folder.path : folder.database)

    #expect(try await cache.entry(for: key) == nil)
    try await cache.store(bytes(400_000, seed: 2), for: key, metadata: metadata())
    #expect(try await cache.bytes(key) == bytes(400_000, seed: 2))
    // The new database numbers its entries from one again, so an old reader must not get new bytes.
    #expect(await failure { _ = try await held.collect() }?.code == .damagedEntry)
    await cache.close()
  }

  @Test("a folder that is a file causes an error with its path")
  func folderIsFile() async throws {
    let folder = try TemporaryFolder()
    try Data().write(to: URL(filePath: folder.path + "/file"))
    let error = await failure { _ = try SQLiteCache(path: folder.path + "/file") }
    #expect(error?.code == .fileSystem)
    #expect(error?.path?.hasPrefix(folder.path) == true)
  }

  @Test("invalid settings are refused")
  func settings() async throws {
    let folder = try TemporaryFolder()
    for configuration in [
      SQLiteCache.Configuration(sizeLimit: -1), .init(entrySizeLimit: -1), .init(busyTimeout: .seconds(-1)), .init(readers: 0),
      .init(readers: 65),
    ] {
      #expect(
        await failure { _ = try SQLiteCache(path: folder.path, configuration: configuration) }?.code == .invalidConfiguration)
    }
    for path in ["", "a\0b"] { #expect(await failure { _ = try SQLiteCache(path: path) }?.code == .invalidConfiguration) }
    let url = try #require(URL(string: "https://example.com/"))
    #expect(await failure { _ = try SQLiteCache(folder: url) }?.code == .invalidConfiguration)
  }
}
#endif
