package import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The entries that version 1 of each format has written. The digest is that of `Bearer token` under
/// `DigestSecret(high: 1, low: 2)`.
extension GoldenEntry {
  /// The time of storing, 2026-01-01 00:00:00 UTC. The requests were sent a second earlier.
  package static let start = Timestamp(seconds: 1_767_225_600)

  /// A time at which none of the entries has expired.
  package static let end = start + .seconds(3_660)

  /// The name of the bytes that were stored without a request.
  package static let name = "avatar"

  /// The entries. This list never changes: a later version adds another list.
  package static let version1: [GoldenEntry] = [
    plain, empty, variant, weak, confirmed, part, failure, large, transformed, transformedVariant, named, purged, repeated,
    unvalidated, tagged, broken,
  ]

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
    changes: [
      .update(
        storedMetadata(
          "/confirmed",
          HTTPResponse(
            status: .ok,
            headerFields: [.eTag: "\"5\"", .cacheControl: "max-age=120, stale-while-revalidate=30", .server: "another"]),
          at: start + .seconds(3_600), revision: 5,
          Freshness(
            generatedAt: start + .seconds(3_599), freshUntil: start + .seconds(3_719),
            staleWhileRevalidateUntil: start + .seconds(3_749),
            staleIfErrorUntil: .distantFuture)))
    ])

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

  private static let large = GoldenEntry(
    description: "a body in three blocks, the last of which has one byte", key: CacheKey(resource: "https://example.com/large"),
    body: largeBody,
    stored: storedMetadata(
      "/large", HTTPResponse(status: .ok, headerFields: [.eTag: "\"8\"", .cacheControl: "max-age=60"]), revision: 8,
      Freshness(generatedAt: start - .seconds(1), freshUntil: start + .seconds(59), staleIfErrorUntil: .distantFuture)))

  /// 128 lines of a kilobyte, each of one letter, and a further line break.
  private static let largeBody: Data = {
    var body = Data()
    for line in 0..<128 { body += Data(repeating: UInt8(ascii: "a") + UInt8(line % 26), count: 1_023) + Data("\n".utf8) }
    return body + Data("\n".utf8)
  }()

  private static let transformed = GoldenEntry(
    description: "a transformed value",
    key: CacheKey(resource: plain.key.resource, transform: "capitals 1"), body: Data("PLAIN TEXT\n".utf8), stored: plain.stored)

  private static let transformedVariant = GoldenEntry(
    description: "a transformed value of a variant",
    key: CacheKey(resource: variant.key.resource, variant: variant.key.variant, transform: "capitals 1"),
    body: Data("GUTEN TAG\n".utf8), stored: variant.stored)

  private static let named = GoldenEntry(
    description: "bytes under a name, with a time to live", key: CacheKey(resource: ResourceID.make(name: name)),
    body: Data("\u{1F642}".utf8),
    stored: StoredMetadata(
      request: HTTPRequest(method: .get, scheme: nil, authority: nil, path: nil), response: HTTPResponse(status: .ok),
      requestTime: start, responseTime: start, revision: revision(9),
      freshness: Freshness(generatedAt: start, freshUntil: .distantFuture), expiration: .after(.seconds(86_400))))

  private static let purged = GoldenEntry(
    description: "a response that a soft purge has marked stale", key: CacheKey(resource: "https://example.com/purged"),
    body: Data("purged\n".utf8),
    stored: storedMetadata(
      "/purged",
      HTTPResponse(status: .ok, headerFields: [.eTag: "\"10\"", .cacheControl: "max-age=600, stale-while-revalidate=30"]),
      revision: 10,
      Freshness(
        generatedAt: start - .seconds(1), freshUntil: start + .seconds(599), staleWhileRevalidateUntil: start + .seconds(629),
        staleIfErrorUntil: .distantFuture)),
    changes: [.markStale(start + .seconds(10))])

  /// More records than fit behind each other in an entry's file.
  private static let repeated = GoldenEntry(
    description: "a response that many 304s have confirmed", key: CacheKey(resource: "https://example.com/repeated"),
    body: Data("repeated\n".utf8), stored: confirmation(0), changes: (1...70).map { .update(confirmation($0)) })

  private static func confirmation(_ number: Int64) -> StoredMetadata {
    let time = start + .seconds(number)
    return storedMetadata(
      "/repeated",
      HTTPResponse(status: .ok, headerFields: [.eTag: "\"11\"", .cacheControl: "max-age=60", .age: "\(number)"]),
      at: time, revision: 11,
      Freshness(generatedAt: time - .seconds(number), freshUntil: time + .seconds(60 - number), staleIfErrorUntil: .distantFuture)
    )
  }

  private static let unvalidated = GoldenEntry(
    description: "a response that was stored without a validator and never expires",
    key: CacheKey(resource: "https://example.com/unvalidated"), body: Data("unvalidated\n".utf8),
    stored: storedMetadata(
      "/unvalidated", HTTPResponse(status: .ok, headerFields: [.cacheControl: "no-store"]), revision: 12,
      .unvalidated(at: start), expiration: .never))

  private static let tagged = GoldenEntry(
    description: "a response with cache tags, repeated fields, bytes that are not UTF-8 and a reason phrase",
    key: CacheKey(resource: "https://example.com/tagged"), body: Data([0, 0xFF, 0x0D, 0x0A]),
    stored: storedMetadata(
      "/tagged",
      HTTPResponse(
        status: .init(code: 203, reasonPhrase: "Fine"),
        headerFields: fields([
          ("Cache-Tag", Array("news, sport".utf8)), ("Set-Cookie", Array("a=b".utf8)), ("set-cookie", Array("c=d".utf8)),
          ("X-Name", [0x53, 0xFC, 0xDF]), ("Cache-Control", Array("max-age=60".utf8)),
        ])),
      revision: 13,
      Freshness(generatedAt: start - .seconds(1), freshUntil: start + .seconds(59), staleIfErrorUntil: .distantFuture)))

  private static let broken = GoldenEntry(
    description: "the part of a body whose transfer broke off after one block",
    key: CacheKey(resource: "https://example.com/broken"), body: largeBody.prefix(65_536),
    stored: storedMetadata(
      "/broken",
      HTTPResponse(
        status: .partialContent,
        headerFields: [
          .contentRange: "bytes 0-65535/131073", .contentLength: "65536", .acceptRanges: "bytes", .eTag: "\"14\"",
          .cacheControl: "max-age=60",
        ]),
      fields: [.range: "bytes=0-65535"], revision: 14,
      Freshness(generatedAt: start - .seconds(1), freshUntil: start + .seconds(59), staleIfErrorUntil: .distantFuture)),
    isBroken: true)

  private static func fields(_ fields: [(name: String, value: [UInt8])]) -> HTTPFields {
    HTTPFields(fields.compactMap { field in HTTPField.Name(field.name).map { HTTPField(name: $0, value: field.value) } })
  }

  private static func storedMetadata(
    _ path: String, _ response: HTTPResponse, fields: HTTPFields = [:], at time: Timestamp = start, revision: UInt64,
    _ freshness: Freshness, expiration: Expiration? = nil
  ) -> StoredMetadata {
    StoredMetadata(
      request: HTTPRequest(method: .get, scheme: "https", authority: "example.com", path: path, headerFields: fields),
      response: response, requestTime: time - .seconds(1), responseTime: time,
      revision: Self.revision(revision), freshness: freshness, expiration: expiration)
  }

  private static func revision(_ number: UInt64) -> Revision { Revision(high: 0x0102_0304_0506_0708, low: number) }
}
