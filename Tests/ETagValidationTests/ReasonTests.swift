import CacheCore
import ETagValidation
import HTTPTypes
import Testing

@Suite("Why a request is forwarded")
struct ReasonTests {
  private func reason(_ request: HTTPRequest, _ shelf: Shelf, _ policy: LoadPolicy = .standard) -> ForwardReason? {
    guard case .fetch(_, _, let reason) = shelf.validator.plan(request, policy: policy, stored: shelf.stored, now: shelf.now)
    else { return nil }
    return reason
  }

  @Test("each reason, from what is stored and what is asked")
  func reasons() {
    var shelf = Shelf()
    shelf.validator = ETagValidator(parts: .completed)
    #expect(reason(.page(), shelf) == .uriMiss)
    #expect(reason(.page(.post), shelf) == .method)
    shelf.length = 10
    _ = shelf.load(.page(.get, "Range: bytes=0-9")) { _ in
      .success(.head(206, "ETag: \"a\"", "Content-Range: bytes 0-9/100", "Cache-Control: max-age=60"))
    }
    #expect(reason(.page(), shelf) == .partial)
    #expect(reason(.page(.get, "Range: bytes=5-20"), shelf) == .partial)
    #expect(reason(.page(.get, "Range: bytes=5-9"), shelf) == nil)
    shelf.entries = []
    _ = shelf.load { _ in .success(.ok("Cache-Control: max-age=60", "Vary: Accept")) }
    #expect(reason(.page(.get, "Accept: x"), shelf) == .varyMiss)
    #expect(reason(.page(.get, "Cache-Control: no-cache"), shelf) == .request)
    #expect(reason(.page(.get, "If-Match: \"a\""), shelf) == .request)
    #expect(reason(.page(), shelf, .reload) == .request)
    #expect(reason(.page(), shelf, .revalidate()) == .request)
    #expect(reason(.page(), shelf) == nil)
    shelf.advance(60)
    #expect(reason(.page(), shelf) == .stale)
  }
}
