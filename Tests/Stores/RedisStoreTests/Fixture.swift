#if Redis
import CacheCore
import HTTPTypes
import RedisStore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

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
  revision: Revision = .random(), etag: String = "\"a\"", tags: String? = nil, at time: Timestamp = SystemClock().now,
  fresh: Duration = .seconds(60), expiration: Expiration? = nil
) -> StoredMetadata {
  var response = HTTPResponse(status: .ok)
  response.headerFields[.eTag] = etag
  if let tags, let name = HTTPField.Name("Cache-Tag") { response.headerFields[name] = tags }
  return StoredMetadata(
    request: HTTPRequest(method: .get, scheme: "https", authority: "example.com", path: "/a"), response: response,
    requestTime: time, responseTime: time, revision: revision,
    freshness: Freshness(generatedAt: time, freshUntil: time + fresh), expiration: expiration)
}

extension RedisCache {
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
