import CacheCore
import ETagValidation
import HTTPTypes
import Testing

@Suite("Reasons for forwarding a request")
struct ReasonTests {
  private func reason(_ request: HTTPRequest, _ cache: CacheFixture, _ policy: LoadPolicy = .standard) -> ForwardReason? {
    switch cache.validator.plan(request, policy: policy, stored: cache.stored, now: cache.now) {
    case .fetch(_, _, let reason): reason
    case .combine: .partial
    case .use, .respond: nil
    }
  }

  @Test("the reason follows from the stored responses and the request")
  func reasons() {
    var cache = CacheFixture()
    cache.validator = ETagValidator(parts: .completed)
    #expect(reason(.page(), cache) == .uriMiss)
    #expect(reason(.page(.post), cache) == .method)
    cache.length = 10
    _ = cache.load(.page(.get, "Range: bytes=0-9")) { _ in
      .success(.head(206, "ETag: \"a\"", "Content-Range: bytes 0-9/100", "Cache-Control: max-age=60"))
    }
    #expect(reason(.page(), cache) == .partial)
    #expect(reason(.page(.get, "Range: bytes=5-20"), cache) == .partial)
    #expect(reason(.page(.get, "Range: bytes=5-9"), cache) == nil)
    cache.entries = []
    _ = cache.load { _ in .success(.ok("Cache-Control: max-age=60", "Vary: Accept")) }
    #expect(reason(.page(.get, "Accept: x"), cache) == .varyMiss)
    #expect(reason(.page(.get, "Cache-Control: no-cache"), cache) == .request)
    #expect(reason(.page(.get, "If-Match: \"a\""), cache) == .request)
    #expect(reason(.page(), cache, .reload) == .request)
    #expect(reason(.page(), cache, .revalidate()) == .request)
    #expect(reason(.page(), cache) == nil)
    cache.advance(60)
    #expect(reason(.page(), cache) == .stale)
  }
}
