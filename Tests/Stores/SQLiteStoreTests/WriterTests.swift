#if SQLite
import CacheCore
import CacheTesting
import GRDB
import HTTPTypes
import Testing

@testable import SQLiteStore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("SQLite store: writers")
struct WriterTests {
  private let key = CacheKey(resource: "https://example.com/a")

  @Test("a body of 100 MB is written and read in chunks")
  func large() async throws {
    let folder = try TemporaryFolder()
    let cache = try SQLiteCache(path: folder.path)
    let chunk = bytes(1_000_000)
    let writer = try await cache.makeWriter(for: key, metadata: metadata())
    for _ in 0..<100 { try await writer.write(chunk) }
    let stored = try await writer.commit(trailers: nil)
    #expect(stored.bodyLength == 100_000_000)

    let body = try #require(await cache.entry(for: key)).body
    var (count, largest, isSame) = (0, 0, true)
    for try await piece in body {
      let start = count % chunk.count
      let first = piece.prefix(chunk.count - start)
      if first != chunk[start..<start + first.count] || piece.dropFirst(first.count) != chunk.prefix(piece.count - first.count) {
        isSame = false
      }
      count += piece.count
      largest = max(largest, piece.count)
    }
    #expect(isSame && count == 100_000_000)
    #expect(largest <= 262_144)
    await cache.close()
  }

  @Test("trailers are returned with the body")
  func trailers() async throws {
    let folder = try TemporaryFolder()
    let cache = try SQLiteCache(path: folder.path)
    let writer = try await cache.makeWriter(for: key, metadata: metadata())
    try await writer.write(bytes(300_000))
    _ = try await writer.commit(trailers: [.server: "late"])
    let body = try #require(await cache.entry(for: key)).body
    _ = try await body.collect()
    #expect(body.source.trailers == [.server: "late"])
    await cache.close()
  }

  @Test("a writer throws after its commit and after an abort")
  func ends() async throws {
    let folder = try TemporaryFolder()
    let cache = try SQLiteCache(path: folder.path)
    let writer = try await cache.makeWriter(for: key, metadata: metadata())
    _ = try await writer.commit(trailers: nil)
    #expect(await failure { try await writer.write(Data("a".utf8)) }?.code == .misuse)
    #expect(await failure { _ = try await writer.commit(trailers: nil) }?.code == .misuse)
    writer.abort()
    #expect(try await cache.bytes(key) == Data())

    let aborted = try await cache.makeWriter(for: key, metadata: metadata())
    aborted.abort()
    #expect(await failure { try await aborted.write(Data("a".utf8)) }?.code == .truncatedBody)
    #expect(await failure { _ = try await aborted.commit(trailers: nil) }?.code == .truncatedBody)
    await cache.close()
  }

  @Test("after close, every call throws, also of open bodies and writers, and closing again does not")
  func closed() async throws {
    let folder = try TemporaryFolder()
    let cache = try SQLiteCache(path: folder.path)
    try await cache.store(bytes(1_000_000), for: key, metadata: metadata())
    let body = try #require(await cache.entry(for: key)).body
    let writer = try await cache.makeWriter(for: key, metadata: metadata())
    await cache.close()
    await cache.close()

    #expect(await failure { _ = try await cache.entry(for: key) }?.code == .closed)
    #expect(await failure { _ = try await cache.variants(of: key.resource) }?.code == .closed)
    #expect(await failure { _ = try await cache.makeWriter(for: key, metadata: metadata()) }?.code == .closed)
    #expect(await failure { try await cache.removeAll() }?.code == .closed)
    #expect(await failure { _ = try await body.collect() }?.code == .closed)
    #expect(await failure { _ = try await writer.commit(trailers: nil) }?.code == .closed)
    // After an orderly close, only the database is left.
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["etagere-1.sqlite"])
  }

  @Test("a reading connection that closes late leaves no log behind")
  func lateReader() async throws {
    // Given
    let folder = try TemporaryFolder()
    let cache = try SQLiteCache(path: folder.path)
    try await cache.store(bytes(1_000), for: key, metadata: metadata())
    let reader = LateReader()
    try await cache.engine.file.read { database, _ in try reader.hold(database) }

    // When
    let isClosed = Lock(false)
    let closing = Task {
      await cache.close()
      isClosed.withLock { $0 = true }
    }
    try await Polling.until { reader.isReleasedByPool }
    // A store that does not wait for the connection has closed by now.
    try? await Polling.until(limit: 5_000) { isClosed.withLock { $0 } }
    reader.endReading()
    await closing.value

    // Then
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["etagere-1.sqlite"])
  }
}

/// Keeps a connection open after GRDB has released it, because SQLite closes a connection with its last statement.
// Proof of `@unchecked Sendable`: the statement is released after the connection's owner, so no two threads use it at once.
private final class LateReader: @unchecked Sendable {
  private weak var database: Database?
  private var statement: GRDB.Statement?

  func hold(_ database: Database) throws {
    self.database = database
    statement = try database.makeStatement(sql: "SELECT count(*) FROM entry")
  }

  var isReleasedByPool: Bool { database == nil }

  func endReading() { statement = nil }
}
#endif
