import CacheCore
import ETagValidation
import HTTPTypes
import Testing

@Suite("stale-if-error, and a soft purge")
struct StaleIfErrorTests {
  private func outcome(
    _ directives: String, status: Int = 503, after seconds: Int64, _ lines: String..., mode: CacheMode = .private
  ) -> CacheFixture.Outcome {
    var cache = CacheFixture()
    cache.validator = ETagValidator(mode: mode)
    _ = cache.load { _ in .success(.ok("ETag: \"a\"", "Cache-Control: \(directives)")) }
    cache.advance(seconds)
    var request = HTTPRequest.page()
    request.headerFields = HTTPFields(lines: lines)
    return cache.load(request) { _ in .success(.head(status)) }
  }

  @Test("500, 502, 503 and 504 are not shown while a stale answer may stand in", arguments: [500, 502, 503, 504])
  func standsIn(status: Int) {
    let line = "max-age=5, stale-if-error=10"
    #expect(outcome(line, status: status, after: 14).source == .standIn)
    #expect(outcome(line, status: status, after: 14).reply?.head.headerFields[.age] == "14")
    #expect(outcome(line, status: status, after: 15).source == .network)
    #expect(outcome("max-age=5", status: status, after: 14).source == .network)
    #expect(outcome("max-age=5", status: status, after: 14, "Cache-Control: stale-if-error=10").source == .standIn)
  }

  @Test("other errors are shown", arguments: [404, 429, 501, 505, 599])
  func others(status: Int) {
    #expect(outcome("max-age=5, stale-if-error=10", status: status, after: 9).source == .network)
  }

  @Test(
    "what forbids stale answers forbids these",
    arguments: ["must-revalidate", "no-cache", "proxy-revalidate", "s-maxage=5"])
  func forbidden(directive: String) {
    #expect(outcome("max-age=5, stale-if-error=10, \(directive)", after: 9, mode: .shared).source == .network)
  }

  @Test("a request that wants nothing stale gets the error", arguments: ["no-cache", "max-age=3", "min-fresh=1", "max-stale=1"])
  func unwelcome(directive: String) {
    #expect(outcome("max-age=5, stale-if-error=10", after: 9, "Cache-Control: \(directive)").source == .network)
  }

  @Test("a condition and a range of the caller's are answered from what stands in")
  func conditions() {
    #expect(outcome("max-age=5, stale-if-error=10", after: 9, "If-None-Match: \"a\"").reply?.head.status == .notModified)
  }

  @Test("what is marked as stale is asked about at the next use, and shown meanwhile as long as it might have been")
  func softPurge() {
    let freshness = Freshness(
      generatedAt: CacheFixture.start, freshUntil: CacheFixture.start + .seconds(60),
      staleWhileRevalidateUntil: CacheFixture.start + .seconds(90))
    let stale = freshness.markedStale(at: CacheFixture.start + .seconds(10))
    #expect(!stale.isFresh(at: CacheFixture.start + .seconds(10)))
    #expect(stale.staleWhileRevalidateUntil == CacheFixture.start + .seconds(40))
    #expect(stale.generatedAt == freshness.generatedAt)
    #expect(stale.staleIfErrorUntil == .distantFuture)
    #expect(freshness.markedStale(at: CacheFixture.start + .seconds(70)) == freshness)
    #expect(stale.markedStale(at: CacheFixture.start + .seconds(20)) == stale)
  }
}
