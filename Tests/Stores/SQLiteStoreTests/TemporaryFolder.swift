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

/// A folder for one test, removed with its last reference.
final class TemporaryFolder: Sendable {
  let path: String

  init() throws {
    path = FileManager.default.resolvedTemporaryPath + "/etagere-sqlite-\(Revision.random())"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  var database: String { path + "/etagere-1.sqlite" }

  /// Opens one of several caches in the folder, which waits without practical limit for another one's transaction.
  func sharedCache(clock: any CacheClock = SystemClock()) throws -> SQLiteCache {
    try SQLiteCache(path: path, configuration: .init(busyTimeout: .seconds(86_400), clock: clock))
  }
}

/// Returns bytes that are the same in every run and without repeated parts.
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
  /// Waits until the entries that lookups found to be removed are removed.
  func cleared() async { await engine.clearing.withLock { $0.task }?.value }

  /// Waits for the collection of partial entries, which begins at opening.
  func collected() async throws { try await Polling.until { [engine] in !engine.isCollecting.withLock { $0 } } }

  /// Waits until no reader needs an entry's bytes. A thread of GRDB releases a body a moment after the body was returned.
  func unpinned() async throws {
    let opening = try await engine.file.read { _, opening in opening }
    try await Polling.until { [engine] in engine.leases.entries(in: opening).isEmpty }
  }

  /// Returns the whole body under `key`, or `nil` for a miss.
  func bytes(_ key: CacheKey) async throws -> Data? { try await entry(for: key)?.body.collect() }
}

/// Returns the error that `work` throws, if any.
func failure(_ work: () async throws -> Void) async -> CacheError? {
  do {
    try await work()
    return nil
  } catch {
    return error as? CacheError
  }
}
#endif
