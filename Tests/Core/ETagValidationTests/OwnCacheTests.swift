import CacheCore
import ETagValidation
import HTTPTypes
import Testing

@Suite("The validator with a custom cache")
struct OwnCacheTests {
  private let now = Timestamp(seconds: 1_767_225_600)
  private let request = HTTPRequest(method: .get, scheme: "https", authority: "example.com", path: "/a")

  private func stored(_ fields: HTTPFields, _ status: HTTPResponse.Status = .ok) -> StoredMetadata? {
    StoredMetadata(
      request: request, response: HTTPResponse(status: status, headerFields: fields), at: now, validator: ETagValidator())
  }

  @Test("the metadata of a response includes its freshness lifetime")
  func lifetime() throws {
    let metadata = try #require(stored([.cacheControl: "max-age=60"]))
    #expect(metadata.freshness.isFresh(at: now + .seconds(59)) && !metadata.freshness.isFresh(at: now + .seconds(60)))
    #expect(metadata.responseTime == now)
  }

  @Test("a response that must not be stored, or a part, has no metadata")
  func forbidden() {
    #expect(stored([.cacheControl: "no-store"]) == nil)
    #expect(stored([.cacheControl: "max-age=60", .contentRange: "bytes 0-0/2"], .partialContent) == nil)
  }

  @Test(
    "the conditional fields are the validators of the response",
    arguments: [
      ([.eTag: "W/\"7\""], [.ifNoneMatch: "W/\"7\""]),
      ([.lastModified: "Sun, 06 Nov 1994 08:49:37 GMT"], [.ifModifiedSince: "Sun, 06 Nov 1994 08:49:37 GMT"]),
      (
        [.eTag: "\"7\"", .lastModified: "Sun, 06 Nov 1994 08:49:37 GMT"],
        [.ifNoneMatch: "\"7\"", .ifModifiedSince: "Sun, 06 Nov 1994 08:49:37 GMT"]
      ),
      ([.cacheControl: "max-age=60"], [:]),
    ] as [(HTTPFields, HTTPFields)])
  func conditions(_ fields: HTTPFields, _ expected: HTTPFields) throws {
    let metadata = try #require(stored(fields))
    #expect(ETagValidator().conditionalHeaders(for: metadata) == expected)
  }
}
