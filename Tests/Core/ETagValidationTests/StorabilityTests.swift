import CacheCore
import ETagValidation
import HTTPTypes
import Testing

@Suite("Storability of responses")
struct StorabilityTests {
  private func verdict(_ response: HTTPResponse, to request: HTTPRequest = .page()) -> ValidationVerdict {
    ETagValidator(digestSecret: DigestSecret(high: 1, low: 2)).judge(
      .success(response), to: request, sent: request, fallback: nil, stored: [], requestTime: CacheFixture.start,
      now: CacheFixture.start,
      revision: Revision(high: 1, low: 1))
  }

  private func stored(_ response: HTTPResponse, to request: HTTPRequest = .page()) -> StoredMetadata? {
    if case .store(_, let metadata, _) = verdict(response, to: request) { metadata } else { nil }
  }

  @Test(
    "a status is stored always, only with its own lifetime, or never",
    arguments: [
      (200, true, true), (203, true, true), (204, true, true), (206, false, false), (300, true, true), (301, true, true),
      (302, false, true), (303, false, true), (304, false, false), (307, false, true), (308, true, true), (400, false, true),
      (404, false, true), (405, false, true), (407, false, false), (412, false, false), (416, false, false), (410, false, true),
      (414, false, true), (418, false, true), (499, false, true),
      (500, false, true), (501, false, true), (503, false, true), (599, false, true), (103, false, false),
      (600, false, false),
    ] as [(Int, Bool, Bool)])
  func statuses(status: Int, plain: Bool, withLifetime: Bool) {
    // A 304 to the caller's own condition belongs to the caller.
    let request = status == 304 ? HTTPRequest.page(.get, "If-None-Match: \"a\"") : .page()
    #expect((stored(.head(status), to: request) != nil) == plain)
    #expect((stored(.head(status, "Cache-Control: max-age=60"), to: request) != nil) == withLifetime)
    #expect((stored(.head(status, "Expires: \(date(60))"), to: request) != nil) == withLifetime)
  }

  @Test(
    "an error with an expired or invalid lifetime is not stored",
    arguments: ["max-age=0", "max-age=x", "max-age=60, no-store"])
  func staleErrors(directives: String) {
    #expect(stored(.head(404, "Cache-Control: \(directives)")) == nil)
    #expect(stored(.head(404, "Cache-Control: max-age=60", "Age: 61")) == nil)
  }

  @Test("an error leaves the store when its lifetime ends, even under policies that never revalidate")
  func errorsExpire() {
    #expect(stored(.head(404, "Cache-Control: max-age=60"))?.expiration == .at(CacheFixture.start + .seconds(60)))
    #expect(stored(.ok("Cache-Control: max-age=60"))?.expiration == nil)
  }

  @Test(
    "the directives of the response decide",
    arguments: [
      ("no-store", false), ("no-store, max-age=60", false), ("NO-STORE", false), ("private, max-age=60", true),
      ("no-cache", true),
      ("must-understand, no-store, max-age=60", true), ("must-understand", true), ("public", true), ("foo=\"no-store\"", true),
    ] as [(String, Bool)])
  func directives(line: String, isStored: Bool) {
    #expect((stored(.ok("Cache-Control: \(line)")) != nil) == isStored)
  }

  @Test(
    "responses to other methods, or to a request with no-store, are not stored",
    arguments: [
      HTTPRequest.page(.head), .page(.post), .page(.put), .page(.options),
      .page(.get, "Cache-Control: no-store"),
    ])
  func requests(request: HTTPRequest) {
    #expect(stored(.ok("Cache-Control: max-age=60"), to: request) == nil)
  }

  @Test(
    "a response that is not stored may be shared, unless it was made for one request",
    arguments: [
      (HTTPRequest.page(), HTTPResponse.head(404), true), (.page(), .head(500), true), (.page(.head), .ok(), true),
      (.page(), .ok("Cache-Control: no-store"), false), (.page(), .head(500, "Cache-Control: no-store"), false),
      (.page(), .ok("Vary: *"), false), (.page(.get, "Cache-Control: no-store"), .ok(), false), (.page(.post), .ok(), false),
    ] as [(HTTPRequest, HTTPResponse, Bool)])
  func sharing(request: HTTPRequest, response: HTTPResponse, expected: Bool) {
    guard case .pass(_, let shareable) = verdict(response, to: request) else {
      Issue.record("stored")
      return
    }
    #expect(shareable == expected)
  }

  @Test("hop-by-hop fields and those that Connection lists are not stored, but all others are")
  func hopByHop() {
    let response = HTTPResponse.ok(
      "Connection: close, X-Hop", "connection: cache-control", "X-Hop: 1", "Keep-Alive: 1", "Proxy-Authenticate: x", "TE: x",
      "Proxy-Connection: x", "Trailer: x", "Transfer-Encoding: chunked", "Upgrade: x", "Set-Cookie: a=1", "Set-Cookie: b=2",
      "X-End: 2",
      "Cache-Control: no-cache", "ETag: \"a\"")
    let fields = stored(response)?.response.headerFields
    #expect(fields?.map(\.name.canonicalName) == ["set-cookie", "set-cookie", "x-end", "cache-control", "etag"])
  }

  @Test("the stored request contains only the URI and the selecting fields")
  func storedRequest() throws {
    let request = HTTPRequest.page(
      .get, path: "/a?b", authority: "user:pass@example.com:8443", "Accept: text/html,image/png", "Cookie: s=secret",
      "X-Other: 1",
      "Authorization: Bearer secret", "Accept-Language:  de ,, en ")
    let metadata = try #require(stored(.ok("Vary: accept-language, Accept, Cookie, X-Absent"), to: request))
    let kept = metadata.request
    #expect(kept.authority == "example.com:8443")
    #expect(kept.path == "/a?b")
    #expect(kept.scheme == "https")
    #expect(kept.headerFields[.accept] == "image/png, text/html")
    #expect(kept.headerFields[.acceptLanguage] == "de, en")
    #expect(kept.headerFields.count == 4)
    let bytes = String(decoding: metadata.encoded(), as: UTF8.self)
    #expect(!bytes.contains("secret"))
    #expect(!bytes.contains("pass"))
    #expect(kept.headerFields[.authorization]?.hasPrefix("siphash128:") == true)
    #expect(kept.headerFields[.cookie] != kept.headerFields[.authorization])
  }
}
