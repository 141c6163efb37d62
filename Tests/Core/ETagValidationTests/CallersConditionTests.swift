import CacheCore
import ETagValidation
import HTTPTypes
import Testing

@Suite("The caller's own conditions")
struct CallersConditionTests {
  /// Returns a cache with one stored response of 100 bytes, after the given number of seconds.
  private func cache(_ lines: String..., after seconds: Int64 = 0) -> CacheFixture {
    var cache = CacheFixture()
    cache.length = 100
    _ = cache.load { _ in .success(HTTPResponse(status: .ok, headerFields: HTTPFields(lines: lines))) }
    cache.advance(seconds)
    cache.sent = []
    return cache
  }

  @Test(
    "a fresh response is compared with the caller's conditions, and the cache makes the 304",
    arguments: [
      ("If-None-Match: \"a\"", 304), ("If-None-Match: W/\"a\"", 304), ("If-None-Match: \"b\"", 200),
      ("If-None-Match: \"b\", \"a\"", 304), ("If-None-Match: \"b,\", \"a\"", 304), ("If-None-Match: *", 304),
      ("If-None-Match: a", 304), ("If-None-Match: \"a", 200), ("If-None-Match: ,, \"x\" ,", 200), ("If-None-Match:", 200),
      ("If-Modified-Since: \(date(-9))", 304), ("If-Modified-Since: \(date(5))", 304), ("If-Modified-Since: \(date(-10))", 200),
      ("If-Modified-Since: yesterday", 200), ("If-None-Match: \"b\"|If-Modified-Since: \(date(5))", 200),
      ("If-None-Match: \"b\"|If-None-Match: \"a\"", 304), ("If-Modified-Since: \(date(5))|If-Modified-Since: \(date(6))", 200),
    ] as [(String, Int)])
  func evaluated(lines: String, status: Int) {
    var cache = cache("ETag: \"a\"", "Last-Modified: \(date(-9))", "Cache-Control: max-age=60")
    var request = HTTPRequest.page()
    request.headerFields = HTTPFields(lines: lines.split(separator: "|").map(String.init))
    let outcome = cache.load(request) { _ in .success(.head(500)) }
    #expect(outcome.source == .cache)
    #expect(outcome.reply?.head.status.code == status)
    #expect(outcome.reply?.content == (status == 304 ? StoredReply.Content.none : .whole))
    #expect(cache.sent.isEmpty)
  }

  @Test("without Last-Modified and Date, the condition is compared with the second of the arrival")
  func withoutDate() {
    var cache = CacheFixture()
    cache.now = cache.now + .milliseconds(900)
    _ = cache.load { _ in .success(.ok("Cache-Control: max-age=60")) }
    for (seconds, status) in [(Int64(0), 304), (-1, 200)] {
      let outcome = cache.load(.page(.get, "If-Modified-Since: \(date(seconds))")) { _ in .success(.head(500)) }
      #expect(outcome.reply?.head.status.code == status)
    }
  }

  @Test("a 304 of the cache has the fields for caches, but none that describe bytes")
  func fieldsOfNotModified() throws {
    var cache = cache(
      "Date: \(date(0))", "ETag: \"a\"", "Last-Modified: \(date(-9))", "Cache-Control: max-age=60", "Vary: Accept", "Expires: 0",
      "Content-Location: /x", "Content-Type: text/plain", "Content-Length: 100", "Content-Encoding: gzip", "X-A: 1", after: 7)
    let reply = try #require(cache.load(.page(.get, "If-None-Match: \"a\"")) { _ in .success(.head(500)) }.reply)
    #expect(
      reply.head.headerFields.map(\.name.canonicalName) == [
        "date", "etag", "cache-control", "vary", "expires", "content-location", "x-a", "age",
      ])
    #expect(reply.head.headerFields[.age] == "7")
  }

  @Test("an unsuccessful response is served whatever the condition", arguments: [301, 404, 503])
  func notSuccess(status: Int) {
    var cache = CacheFixture()
    _ = cache.load { _ in .success(.head(status, "ETag: \"a\"", "Cache-Control: max-age=60")) }
    let outcome = cache.load(.page(.get, "If-None-Match: \"a\"", "Range: bytes=0-1")) { _ in .success(.head(500)) }
    #expect(outcome.source == .cache)
    #expect(outcome.reply?.head.status.code == status)
  }

  @Test(
    "a condition that only the origin may evaluate is forwarded unchanged",
    arguments: ["If-Match: \"a\"", "If-Unmodified-Since: \(date(0))"])
  func origins(line: String) {
    for seconds in [Int64(0), 100] {
      var cache = cache("ETag: \"a\"", "Cache-Control: max-age=60", after: seconds)
      let outcome = cache.load(.page(.get, line)) { _ in .success(.head(412)) }
      #expect(outcome.response?.status == .preconditionFailed)
      #expect(cache.sent == [.page(.get, line)])
      #expect(cache.entries.count == 1)
    }
  }

  @Test(
    "the tag of a stale response is added to the caller's, and its date replaces the caller's",
    arguments: [
      // stored, the caller's, sent tags, sent date
      ("ETag: \"a\"", "If-None-Match: \"b\"", "\"b\", \"a\"", nil), ("ETag: \"a\"", "If-None-Match: \"a\"", "\"a\"", nil),
      ("ETag: \"a\"", "If-None-Match: W/\"a\" , \"c\"", "W/\"a\" , \"c\"", nil), ("ETag: \"a\"", "If-None-Match: *", "*", nil),
      ("ETag: \"a\"", "If-None-Match: junk", "junk", nil), ("ETag: junk", "If-None-Match: \"b\"", "\"b\"", nil),
      ("ETag: \"a\"", "If-Modified-Since: \(date(5))", "\"a\"", nil),
      ("Last-Modified: \(date(-9))", "If-Modified-Since: \(date(5))", nil, date(-9)),
      ("Last-Modified: \(date(-9))", "If-None-Match: \"b\"", "\"b\"", nil),
      ("X-A: 1", "If-Modified-Since: \(date(5))", nil, date(5)),
    ] as [(String, String, String?, String?)])
  func joined(stored: String, own: String, tags: String?, since: String?) {
    var cache = cache(stored, "Cache-Control: max-age=1", after: 10)
    _ = cache.load(.page(.get, own)) { _ in .success(.head(503)) }
    #expect(cache.sent.first?.headerFields[.ifNoneMatch] == tags)
    #expect(cache.sent.first?.headerFields[.ifModifiedSince] == since)
  }

  @Test("a 304 for the stored tag updates the stored response before the caller's condition is evaluated")
  func freshened() {
    for (own, status) in [("If-None-Match: \"b\"", 200), ("If-None-Match: \"a\"", 304), ("If-Modified-Since: \(date(-10))", 200)]
    {
      var cache = cache("ETag: \"a\"", "Last-Modified: \(date(-9))", "Cache-Control: max-age=5", after: 10)
      let outcome = cache.load(.page(.get, own)) { _ in .success(.head(304, "ETag: \"a\"")) }
      #expect(outcome.source == .revalidated)
      #expect(outcome.reply?.head.status.code == status)
      #expect(cache.stored[0].freshness.isFresh(at: cache.now))
    }
  }

  @Test("a 304 for a tag that only the caller has is returned and changes nothing")
  func callersOwn() {
    var cache = cache("ETag: \"a\"", "Cache-Control: max-age=5", after: 10)
    let before = cache.stored
    let outcome = cache.load(.page(.get, "If-None-Match: \"b\"")) { _ in .success(.head(304, "ETag: \"b\"")) }
    #expect(outcome.source == .network)
    #expect(outcome.response?.status == .notModified)
    #expect(cache.stored == before)
  }

  @Test("a 304 without a tag for two revalidated tags leads to a request with the caller's condition only")
  func ambiguous() {
    var cache = cache("ETag: \"a\"", "Cache-Control: max-age=5", after: 10)
    let own = HTTPRequest.page(.get, "If-None-Match: \"b\"")
    let outcome = cache.load(own) { _ in .success(.head(304)) }
    #expect(outcome.response?.status == .notModified)
    #expect(outcome.source == .network)
    #expect(cache.sent.count == 2)
    #expect(cache.sent.last == own)
  }

  @Test("without a stored response, conditions are forwarded, and a 304 or 412 is returned", arguments: [304, 412])
  func nothingStored(status: Int) {
    var cache = CacheFixture()
    let request = HTTPRequest.page(.get, "If-None-Match: \"x\"", "If-Modified-Since: \(date(0))")
    let outcome = cache.load(request) { _ in .success(.head(status, "ETag: \"x\"")) }
    #expect(outcome.response?.status.code == status)
    #expect(cache.sent == [request])
    #expect(cache.entries.isEmpty)
  }

  @Test("a new response to a conditional request replaces the stored one")
  func replaced() {
    var cache = cache("ETag: \"a\"", "Cache-Control: max-age=5", after: 10)
    let outcome = cache.load(.page(.get, "If-None-Match: \"b\"")) { _ in .success(.ok("ETag: \"c\"")) }
    #expect(outcome.source == .network)
    #expect(cache.entries.count == 1)
    #expect(cache.stored[0].response.headerFields[.eTag] == "\"c\"")
  }
}
