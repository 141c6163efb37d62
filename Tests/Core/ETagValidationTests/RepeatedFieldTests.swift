import CacheCore
import ETagValidation
import HTTPTypes
import Testing

@Suite("Responses with fields that occur twice")
struct RepeatedFieldTests {
  private func cache(_ lines: String...) -> CacheFixture {
    var cache = CacheFixture()
    cache.length = 100
    cache.validator = ETagValidator(heuristics: Heuristics(), digestSecret: DigestSecret(high: 1, low: 2))
    _ = cache.load { _ in .success(HTTPResponse(status: .ok, headerFields: HTTPFields(lines: lines))) }
    cache.advance(100_000)
    return cache
  }

  @Test(
    "the first ETag and Last-Modified are sent, never both in one value",
    arguments: [("ETag", "\"a\"", "\"b\"", "If-None-Match"), ("Last-Modified", date(-9), date(-5), "If-Modified-Since")])
  func validators(name: String, first: String, second: String, condition: String) {
    for other in [first, second] {
      var cache = cache("\(name): \(first)", "\(name): \(other)")
      let outcome = cache.load { head in .success(head.headerFields[text: condition] == first ? .head(304) : .ok()) }
      #expect(outcome.source == .revalidated)
    }
  }

  @Test("different tags or dates are no strong validators, so no range is combined with them", arguments: [true, false])
  func strong(isEqual: Bool) {
    let tags = cache("ETag: \"a\"", "ETag: \"\(isEqual ? "a" : "b")\"").stored[0]
    let dates = cache("Last-Modified: \(date(-9))", "Last-Modified: \(date(isEqual ? -9 : -8))", "Date: \(date(0))").stored[0]
    for (metadata, condition) in [(tags, "\"a\""), (dates, date(-9))] {
      let reply = ETagValidator().reply(
        to: .page(.get, "Range: bytes=0-9", "If-Range: \(condition)"), from: metadata, now: CacheFixture.start)
      #expect(reply.head.status == (isEqual ? .partialContent : .ok))
    }
  }

  @Test(
    "a part with one range in two equal lines is stored, and one with two ranges is not",
    arguments: [("bytes 0-9/100", true), ("bytes 0-9/90", false)])
  func contentRange(second: String, isStored: Bool) {
    var cache = CacheFixture()
    cache.validator = ETagValidator(parts: .reused, digestSecret: DigestSecret(high: 1, low: 2))
    _ = cache.load(.page(.get, "Range: bytes=0-9")) { _ in
      .success(.head(206, "ETag: \"a\"", "Cache-Control: max-age=60", "Content-Range: bytes 0-9/100", "Content-Range: \(second)"))
    }
    #expect(cache.entries.count == (isStored ? 1 : 0))
  }

  @Test("different modification dates give no heuristic lifetime")
  func heuristics() {
    let validator = ETagValidator(heuristics: Heuristics())
    for (second, seconds) in [(date(-1_000), 100), (date(-2_000), 0)] {
      let freshness = validator.freshness(
        of: .ok("Last-Modified: \(date(-1_000))", "Last-Modified: \(second)"), requestTime: CacheFixture.start,
        responseTime: CacheFixture.start)
      #expect(freshness.freshUntil - freshness.generatedAt == .seconds(seconds))
    }
  }

  @Test("the earliest Date counts, so that a response is not younger than it says")
  func dates() {
    for lines in [
      ["Date: \(date(-30))", "Date: \(date(-10))"], ["Date: \(date(-10))", "Date: \(date(-30))"],
      ["Date: x", "Date: \(date(-30))"],
    ] {
      let response = HTTPResponse(
        status: .ok, headerFields: HTTPFields(lines: lines + ["Cache-Control: max-age=60", "Age: 5", "Age: 50"]))
      let freshness = ETagValidator().freshness(of: response, requestTime: CacheFixture.start, responseTime: CacheFixture.start)
      #expect(freshness.freshUntil == CacheFixture.start + .seconds(30))
    }
  }

  @Test("each Location and Content-Location of the same origin is invalidated, up to a limit")
  func invalidations() {
    var cache = CacheFixture()
    _ = cache.load(.page(.post)) { _ in
      .success(.head(201, "Location: /a", "Location: /b", "Content-Location: /c", "Location: https://other.example/d"))
    }
    #expect(cache.invalidated == ["/page", "/a", "/b", "/c"].map { "https://example.com\($0)" })
    let many = HTTPFields(lines: (0..<100).map { "Location: /\($0)" })
    _ = cache.load(.page(.post)) { _ in .success(HTTPResponse(status: .created, headerFields: many)) }
    #expect(cache.invalidated.count == 12)
  }

  @Test("the response to a POST represents its target only if all Content-Location fields say so")
  func representation() {
    for (second, isStored) in [("/page", true), ("/other", false)] {
      var cache = CacheFixture()
      _ = cache.load(.page(.post)) { _ in
        .success(.ok("Cache-Control: max-age=60", "Content-Location: /page", "Content-Location: \(second)"))
      }
      #expect(cache.entries.count == (isStored ? 1 : 0))
    }
  }
}
