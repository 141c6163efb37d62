#if SQLite
import CacheCore
import CacheTesting
import HTTPTypes
@testable import SQLiteStore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A folder of one test's own, removed when the test lets go of it.
final class TemporaryFolder: Sendable {
  let path: String

  init() throws {
    path = FileManager.default.temporaryDirectory.path + "/etagere-sqlite-\(Revision.random())"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  var database: String { path + "/etagere-1.sqlite" }

  /// One of several caches in the folder. It waits for a transaction of another one as long as the disk takes.
  func sharedCache(clock: any CacheClock = SystemClock()) throws -> SQLiteCache {
    try SQLiteCache(path: path, configuration: .init(busyTimeout: .seconds(86_400), clock: clock))
  }
}

/// Bytes that are the same in every run, and in which no piece is like another.
func bytes(_ count: Int, seed: UInt64 = 1) -> Data {
  var state = seed
  var words: [UInt64] = []
  words.reserveCapacity(count / 8 + 1)
  for _ in 0...(count / 8) {
    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
    words.append((state ^ (state >> 29)).littleEndian)
  }
  return words.withUnsafeBytes { Data($0.prefix(count)) }
}

func metadata(
  revision: Revision = .random(), etag: String = "\"a\"", at time: Timestamp = Timestamp(seconds: 1_767_225_600),
  expiration: Expiration? = nil, length: Int64? = nil, padding: Int = 0
) -> StoredMetadata {
  var response = HTTPResponse(status: .ok)
  response.headerFields[.eTag] = etag
  if padding > 0 { response.headerFields[.server] = String(repeating: "x", count: padding) }
  return StoredMetadata(
    request: HTTPRequest(method: .get, scheme: "https", authority: "example.com", path: "/a"), response: response,
    requestTime: time, responseTime: time, bodyLength: length, revision: revision,
    freshness: Freshness(generatedAt: time, freshUntil: time), expiration: expiration)
}

extension SQLiteCache {
  /// Returns when what looks have found is cleared away.
  func cleared() async { await engine.clearing.withLock { $0.task }?.value }

  /// Returns when what was left behind is collected, which begins at opening.
  func collected() async throws { try await Turns.until { [engine] in !engine.isCollecting.withLock { $0 } } }

  /// Returns when nothing holds an entry's bytes. A thread of GRDB releases a body a moment after the body was returned.
  func unpinned() async throws {
    let opening = try await engine.file.read { _, opening in opening }
    try await Turns.until { [engine] in engine.leases.entries(in: opening).isEmpty }
  }

  /// The body under `key`, whole; nil: a miss.
  func bytes(_ key: CacheKey) async throws -> Data? { try await entry(for: key)?.body.collect() }
}

/// The error that `work` throws; nil when it throws none.
func failure(_ work: () async throws -> Void) async -> CacheError? {
  do {
    try await work()
    return nil
  } catch {
    return error as? CacheError
  }
}
#endif
