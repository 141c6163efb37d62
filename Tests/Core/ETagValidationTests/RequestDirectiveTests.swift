import CacheCore
import ETagValidation
import HTTPTypes
import Testing

@Suite("Directives of a request")
struct RequestDirectiveTests {
  /// A response with a lifetime of 60 s and a tag.
  private let plain = HTTPResponse.ok("Cache-Control: max-age=60", "ETag: \"a\"")

  @Test(
    "a response with a lifetime of 60 s is used, revalidated or ignored as the request demands",
    arguments: [
      // request, elapsed seconds, use of the stored response
      ("no-cache", 0, .conditionallyCached), ("max-age=0", 0, .conditionallyCached), ("max-age=x", 0, .conditionallyCached),
      ("max-age=100", 59, .fullyCached), ("min-fresh=x", 0, .conditionallyCached), ("max-stale=x", 61, .conditionallyCached),
      ("no-store", 60, .notCached), ("only-if-cached, max-stale", 99, .fullyCached), ("no-transform", 59, .fullyCached),
    ] as [(String, Int64, CacheUse)])
  func directives(line: String, seconds: Int64, expected: CacheUse) {
    #expect(cacheUse(of: plain, again: .page(.get, "Cache-Control: \(line)"), after: seconds) == expected)
  }

  @Test(
    "the minimum interval of revalidate does not override the request's directives",
    arguments: [
      // request, elapsed seconds, use of the stored response
      ("x", 30, .fullyCached), ("x", 90, .fullyCached), ("no-cache", 30, .conditionallyCached),
      ("max-age=0", 30, .conditionallyCached), ("max-age=0", 0, .conditionallyCached), ("max-age=30", 30, .fullyCached),
      ("max-age=30", 31, .conditionallyCached), ("max-age=200", 59, .fullyCached), ("max-age=200", 60, .conditionallyCached),
      ("min-fresh=20", 40, .fullyCached), ("min-fresh=20", 41, .conditionallyCached), ("max-stale", 90, .fullyCached),
      ("max-stale=10", 70, .fullyCached), ("max-stale=10", 71, .conditionallyCached),
    ] as [(String, Int64, CacheUse)])
  func floor(line: String, seconds: Int64, expected: CacheUse) {
    let again = HTTPRequest.page(.get, "Cache-Control: \(line)")
    #expect(cacheUse(of: plain, again: again, after: seconds, .revalidate(atMostEvery: .seconds(100))) == expected)
    // The minimum interval overrides the response's `no-cache`, but not the request's.
    let strict = HTTPResponse.ok("Cache-Control: max-age=60, no-cache", "ETag: \"a\"")
    #expect(cacheUse(of: strict, again: again, after: seconds, .revalidate(atMostEvery: .seconds(100))) == expected)
  }

  @Test("only-if-cached never sends a request, and gives a 504 if no stored response is usable")
  func onlyIfCached() {
    let request = HTTPRequest.page(.get, "Cache-Control: only-if-cached")
    for policy in [
      LoadPolicy.standard, .cacheFirst, .reload, .revalidate(), .staleWhileRevalidate, .memoryElseReload, .cacheOnly,
    ] {
      var cache = CacheFixture()
      #expect(cache.load(request, policy) { _ in .success(.ok()) }.response?.status == .gatewayTimeout)
      #expect(cache.sent.isEmpty)
    }
    var cache = CacheFixture()
    _ = cache.load { _ in .success(plain) }
    cache.advance(60)
    #expect(cache.load(request) { _ in .success(.ok()) }.source == .generated)
    let outcome = cache.load(request, .staleWhileRevalidate) { _ in .success(.head(304)) }
    #expect(outcome.source == .cache)
    #expect(outcome.background == nil)
  }

  @Test(
    "an age limit of the request overrides stale-while-revalidate of the response",
    arguments: ["max-age=100", "min-fresh=0", "no-cache"])
  func noStaleWhileRevalidate(line: String) {
    let response = HTTPResponse.ok("Cache-Control: max-age=60, stale-while-revalidate=60", "ETag: \"a\"")
    #expect(cacheUse(of: response, again: .page(.get, "Cache-Control: \(line)"), after: 61) == .conditionallyCached)
    #expect(
      cacheUse(of: response, again: .page(.get, "Cache-Control: \(line)"), after: 61, .staleWhileRevalidate)
        == .conditionallyCached)
  }

  @Test(
    "a response that the request rules out is not served when the origin is unreachable",
    arguments: [
      ("no-cache", false), ("max-age=100", false), ("min-fresh=5", false), ("max-stale=5", false), ("max-stale=50", true),
      ("x", true),
    ] as [(String, Bool)])
  func standIn(line: String, stands: Bool) {
    var cache = CacheFixture()
    _ = cache.load { _ in .success(plain) }
    cache.advance(70)
    let outcome = cache.load(.page(.get, "Cache-Control: \(line)"), .revalidate()) { _ in
      .failure(CacheError(.timedOut, reason: "no response"))
    }
    #expect(outcome.source == (stands ? .standIn : .failure))
  }
}
