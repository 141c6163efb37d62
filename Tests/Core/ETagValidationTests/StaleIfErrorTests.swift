import CacheCore
import ETagValidation
import HTTPTypes
import Testing

@Suite("stale-if-error and the soft purge")
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

  @Test(
    "a stale response is served in place of a 429, 500, 502, 503 or 504 within stale-if-error",
    arguments: [429, 500, 502, 503, 504])
  func standsIn(status: Int) {
    let line = "max-age=5, stale-if-error=10"
    #expect(outcome(line, status: status, after: 14).source == .standIn)
    #expect(outcome(line, status: status, after: 14).reply?.head.headerFields[.age] == "14")
    #expect(outcome(line, status: status, after: 15).source == .network)
    #expect(outcome("max-age=5", status: status, after: 14).source == .network)
    #expect(outcome("max-age=5", status: status, after: 14, "Cache-Control: stale-if-error=10").source == .standIn)
  }

  @Test("other errors are returned", arguments: [404, 428, 501, 505, 599])
  func others(status: Int) {
    #expect(outcome("max-age=5, stale-if-error=10", status: status, after: 9).source == .network)
  }

  @Test(
    "directives that forbid stale responses also forbid this use",
    arguments: ["must-revalidate", "no-cache", "proxy-revalidate", "s-maxage=5"])
  func forbidden(directive: String) {
    #expect(outcome("max-age=5, stale-if-error=10, \(directive)", after: 9, mode: .shared).source == .network)
  }

  @Test(
    "a request that does not accept stale responses gets the error",
    arguments: ["no-cache", "max-age=3", "min-fresh=1", "max-stale=1"])
  func unwelcome(directive: String) {
    #expect(outcome("max-age=5, stale-if-error=10", after: 9, "Cache-Control: \(directive)").source == .network)
  }

  @Test("the caller's conditions and ranges apply to the stale response")
  func conditions() {
    #expect(outcome("max-age=5, stale-if-error=10", after: 9, "If-None-Match: \"a\"").reply?.head.status == .notModified)
  }

  @Test("a soft purge forces revalidation at the next use and preserves the length of stale-while-revalidate")
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
