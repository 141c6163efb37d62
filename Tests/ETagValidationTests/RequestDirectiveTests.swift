import CacheCore
import ETagValidation
import HTTPTypes
import Testing

@Suite("What a request's directives ask for")
struct RequestDirectiveTests {
  /// A lifetime of 60 s and a tag.
  private let plain = HTTPResponse.ok("Cache-Control: max-age=60", "ETag: \"a\"")

  @Test(
    "an answer with 60 s to live is used, asked about or refused",
    arguments: [
      // request, seconds that passed, sight
      ("no-cache", 0, .conditionallyCached), ("max-age=10", 10, .fullyCached), ("max-age=10", 11, .conditionallyCached),
      ("max-age=0", 0, .conditionallyCached), ("max-age=x", 0, .conditionallyCached), ("max-age=100", 59, .fullyCached),
      ("max-age=100", 60, .conditionallyCached), ("min-fresh=20", 40, .fullyCached), ("min-fresh=20", 41, .conditionallyCached),
      ("min-fresh=x", 0, .conditionallyCached), ("max-stale", 100_000, .fullyCached), ("max-stale=10", 70, .fullyCached),
      ("max-stale=10", 71, .conditionallyCached), ("max-stale=x", 61, .conditionallyCached),
      ("max-age=65, max-stale=100", 65, .fullyCached),
      ("max-age=65, max-stale=100", 66, .conditionallyCached), ("no-store", 59, .fullyCached), ("no-store", 60, .notCached),
      ("only-if-cached", 59, .fullyCached), ("only-if-cached, max-stale", 99, .fullyCached), ("no-transform", 59, .fullyCached),
    ] as [(String, Int64, Sight)])
  func directives(line: String, seconds: Int64, expected: Sight) {
    #expect(sight(of: plain, again: .page(.get, "Cache-Control: \(line)"), after: seconds) == expected)
  }

  @Test(
    "the floor of revalidate does not overrule what the request asks for",
    arguments: [
      // request, seconds that passed, sight
      ("x", 30, .fullyCached), ("x", 90, .fullyCached), ("no-cache", 30, .conditionallyCached),
      ("max-age=0", 30, .conditionallyCached), ("max-age=0", 0, .conditionallyCached), ("max-age=30", 30, .fullyCached),
      ("max-age=30", 31, .conditionallyCached), ("max-age=200", 59, .fullyCached), ("max-age=200", 60, .conditionallyCached),
      ("min-fresh=20", 40, .fullyCached), ("min-fresh=20", 41, .conditionallyCached), ("max-stale", 90, .fullyCached),
      ("max-stale=10", 70, .fullyCached), ("max-stale=10", 71, .conditionallyCached),
    ] as [(String, Int64, Sight)])
  func floor(line: String, seconds: Int64, expected: Sight) {
    let again = HTTPRequest.page(.get, "Cache-Control: \(line)")
    #expect(sight(of: plain, again: again, after: seconds, .revalidate(atMostEvery: .seconds(100))) == expected)
    // The floor is the caller's word about the answer's own `no-cache`, not about his request.
    let strict = HTTPResponse.ok("Cache-Control: max-age=60, no-cache", "ETag: \"a\"")
    #expect(sight(of: strict, again: again, after: seconds, .revalidate(atMostEvery: .seconds(100))) == expected)
  }

  @Test("Pragma: no-cache asks, unless there is a Cache-Control")
  func pragma() {
    #expect(sight(of: plain, again: .page(.get, "Pragma: no-cache")) == .conditionallyCached)
    #expect(sight(of: plain, again: .page(.get, "Pragma: no-cache", "Cache-Control: max-age=9")) == .fullyCached)
  }

  @Test("max-stale does not help against must-revalidate and no-cache", arguments: ["must-revalidate", "no-cache"])
  func maxStale(directive: String) {
    let strict = HTTPResponse.ok("Cache-Control: max-age=60, \(directive)", "ETag: \"a\"")
    #expect(sight(of: strict, again: .page(.get, "Cache-Control: max-stale"), after: 61) == .conditionallyCached)
  }

  @Test("only-if-cached never asks: 504 when nothing stored will do, whatever the policy")
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
    #expect(cache.load(request) { _ in .success(.ok()) }.source == .madeHere)
    let outcome = cache.load(request, .staleWhileRevalidate) { _ in .success(.head(304)) }
    #expect(outcome.source == .cache)
    #expect(outcome.background == nil)
  }

  @Test(
    "a limit to the age overrules the answer's stale-while-revalidate", arguments: ["max-age=100", "min-fresh=0", "no-cache"])
  func noStaleWhileRevalidate(line: String) {
    let answer = HTTPResponse.ok("Cache-Control: max-age=60, stale-while-revalidate=60", "ETag: \"a\"")
    #expect(sight(of: answer, again: .page(.get, "Cache-Control: \(line)"), after: 61) == .conditionallyCached)
    #expect(
      sight(of: answer, again: .page(.get, "Cache-Control: \(line)"), after: 61, .staleWhileRevalidate) == .conditionallyCached)
  }

  @Test(
    "what the request rules out does not stand in when nobody can be asked",
    arguments: [
      ("no-cache", false), ("max-age=100", false), ("min-fresh=5", false), ("max-stale=5", false), ("max-stale=50", true),
      ("x", true),
    ] as [(String, Bool)])
  func standIn(line: String, stands: Bool) {
    var cache = CacheFixture()
    _ = cache.load { _ in .success(plain) }
    cache.advance(70)
    let outcome = cache.load(.page(.get, "Cache-Control: \(line)"), .revalidate()) { _ in
      .failure(CacheError(.timedOut, reason: "no answer"))
    }
    #expect(outcome.source == (stands ? .standIn : .failure))
  }
}
