import CacheCore
import HTTPTypes

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// An entry of a golden folder, which every version must read from its file.
struct GoldenEntry: Sendable, CustomStringConvertible {
  let description: String
  let key: CacheKey
  let body: Data
  /// The metadata when the entry was stored.
  let stored: StoredMetadata
  /// The metadata after a 304.
  var updated: StoredMetadata?

  /// The metadata that a reader finds.
  var metadata: StoredMetadata {
    var metadata = updated ?? stored
    metadata.bodyLength = Int64(body.count)
    return metadata
  }

  /// The time of storing, 2026-01-01 00:00:00 UTC. The requests were sent a second earlier.
  static let start = Timestamp(seconds: 1_767_225_600)

  /// The entries that version 1 wrote. The digest is that of `Bearer token` under `DigestSecret(high: 1, low: 2)`. This list
  /// never changes: a later version adds another list.
  static let version1: [GoldenEntry] = [plain, empty, variant, weak, confirmed, part, failure]

  private static let plain = GoldenEntry(
    description: "a plain 200", key: CacheKey(resource: "https://example.com/plain"), body: Data("plain text\n".utf8),
    stored: storedMetadata(
      "/plain",
      HTTPResponse(
        status: .ok,
        headerFields: [
          .date: "Thu, 01 Jan 2026 00:00:00 GMT", .contentType: "text/plain", .eTag: "\"1\"",
          .lastModified: "Wed, 31 Dec 2025 00:00:00 GMT", .cacheControl: "max-age=60",
        ]),
      revision: 1,
      Freshness(generatedAt: start - .seconds(1), freshUntil: start + .seconds(59), staleIfErrorUntil: .distantFuture)))

  private static let empty = GoldenEntry(
    description: "an empty body with trailers, in a partition and under the caller's key",
    key: CacheKey(resource: ResourceID.make(uri: "", key: "report", partition: "tenant-7")), body: Data(),
    stored: {
      var metadata = storedMetadata(
        "/report?signature=x", HTTPResponse(status: .noContent), revision: 2,
        Freshness(generatedAt: start, freshUntil: start, staleIfErrorUntil: .distantFuture))
      metadata.trailers = [.eTag: "\"late\""]
      return metadata
    }())

  private static let digest = "siphash128:2c7a14915e37ab4a61351b6581172515"

  private static let variant = GoldenEntry(
    description: "a variant, with a digest of the credential that Vary names",
    key: CacheKey(
      resource: "https://example.com/varying", variant: "accept-language=de\nauthorization=\(digest)"),
    body: Data("Guten Tag\n".utf8),
    stored: storedMetadata(
      "/varying",
      HTTPResponse(
        status: .ok,
        headerFields: [.vary: "Authorization, Accept-Language", .eTag: "\"de\"", .cacheControl: "max-age=60"]),
      fields: [.acceptLanguage: "de", .authorization: digest], revision: 3,
      Freshness(generatedAt: start - .seconds(1), freshUntil: start + .seconds(59), staleIfErrorUntil: .distantFuture)))

  private static let weak = GoldenEntry(
    description: "a weak tag that requires revalidation before each use", key: CacheKey(resource: "https://example.com/weak"),
    body: Data("weak\n".utf8),
    stored: storedMetadata(
      "/weak", HTTPResponse(status: .ok, headerFields: [.eTag: "W/\"7\"", .cacheControl: "no-cache"]), revision: 4,
      Freshness(
        generatedAt: start - .seconds(1), freshUntil: start - .seconds(1), requiresRevalidation: true, staleIfErrorUntil: nil)))

  private static let confirmed = GoldenEntry(
    description: "a 200 that a 304 confirmed an hour later", key: CacheKey(resource: "https://example.com/confirmed"),
    body: Data("confirmed\n".utf8),
    stored: storedMetadata(
      "/confirmed",
      HTTPResponse(status: .ok, headerFields: [.eTag: "\"5\"", .cacheControl: "max-age=60, stale-while-revalidate=30"]),
      revision: 5,
      Freshness(
        generatedAt: start - .seconds(1), freshUntil: start + .seconds(59), staleWhileRevalidateUntil: start + .seconds(89),
        staleIfErrorUntil: .distantFuture)),
    updated: storedMetadata(
      "/confirmed",
      HTTPResponse(
        status: .ok,
        headerFields: [.eTag: "\"5\"", .cacheControl: "max-age=120, stale-while-revalidate=30", .server: "another"]),
      at: start + .seconds(3_600), revision: 5,
      Freshness(
        generatedAt: start + .seconds(3_599), freshUntil: start + .seconds(3_719),
        staleWhileRevalidateUntil: start + .seconds(3_749),
        staleIfErrorUntil: .distantFuture)))

  private static let part = GoldenEntry(
    description: "a partial response (206)", key: CacheKey(resource: "https://example.com/part", variant: "range=bytes=0-4"),
    body: Data("01234".utf8),
    stored: storedMetadata(
      "/part",
      HTTPResponse(
        status: .partialContent,
        headerFields: [.contentRange: "bytes 0-4/10", .eTag: "\"6\"", .cacheControl: "max-age=60"]),
      fields: [.range: "bytes=0-4"], revision: 6,
      Freshness(generatedAt: start - .seconds(1), freshUntil: start + .seconds(59), staleIfErrorUntil: .distantFuture)))

  private static let failure = GoldenEntry(
    description: "an error that expires when it is no longer fresh", key: CacheKey(resource: "https://example.com/gone"),
    body: Data("no such page\n".utf8),
    stored: storedMetadata(
      "/gone", HTTPResponse(status: .notFound, headerFields: [.cacheControl: "max-age=7200"]), revision: 7,
      Freshness(generatedAt: start - .seconds(1), freshUntil: start + .seconds(7_199), staleIfErrorUntil: .distantFuture),
      expiration: .at(start + .seconds(7_199))))

  private static func storedMetadata(
    _ path: String, _ response: HTTPResponse, fields: HTTPFields = [:], at time: Timestamp = start, revision: UInt64,
    _ freshness: Freshness, expiration: Expiration? = nil
  ) -> StoredMetadata {
    StoredMetadata(
      request: HTTPRequest(method: .get, scheme: "https", authority: "example.com", path: path, headerFields: fields),
      response: response, requestTime: time - .seconds(1), responseTime: time,
      revision: Revision(high: 0x0102_0304_0506_0708, low: revision), freshness: freshness, expiration: expiration)
  }
}
