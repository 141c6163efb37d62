import CacheCore
import ETagValidation
import HTTPTypes
import Testing

@Suite("Load policies")
struct PolicyTests {
  enum State: String, CaseIterable { case fresh, stale, requiresRevalidation, mustRevalidate, missing }

  /// Returns a cache with one response in the given state.
  private func cache(_ state: State) -> CacheFixture {
    var cache = CacheFixture()
    let directives =
      switch state {
      case .fresh, .missing: "max-age=100"
      case .stale: "max-age=5"
      case .requiresRevalidation: "max-age=100, no-cache"
      case .mustRevalidate: "max-age=5, must-revalidate"
      }
    if state != .missing { _ = cache.load { _ in .success(.ok("Cache-Control: \(directives)", "ETag: \"a\"")) } }
    cache.advance(10)
    cache.sent = []
    return cache
  }

  private static func confirming(_ head: HTTPRequest) -> Result<HTTPResponse, CacheError> {
    .success(head.headerFields[.ifNoneMatch] == "\"a\"" ? .head(304) : .ok())
  }

  @Test(
    "each policy handles each state of a stored response as documented",
    arguments: [
      (.standard, [.cache, .revalidated, .revalidated, .revalidated, .network]),
      (.cacheFirst, [.cache, .cache, .cache, .cache, .network]),
      (.memoryElseReload, [.cache, .cache, .cache, .cache, .network]),
      (.cacheOnly, [.cache, .cache, .cache, .cache, .generated]),
      (.reload, [.network, .network, .network, .network, .network]),
      (.revalidate(), [.revalidated, .revalidated, .revalidated, .revalidated, .network]),
      (.revalidate(atMostEvery: .seconds(11)), [.cache, .cache, .cache, .cache, .network]),
      (.revalidate(atMostEvery: .seconds(10)), [.revalidated, .revalidated, .revalidated, .revalidated, .network]),
      (.revalidate(atMostEvery: .seconds(-1)), [.revalidated, .revalidated, .revalidated, .revalidated, .network]),
      (.staleWhileRevalidate, [.cache, .cache, .revalidated, .revalidated, .network]),
    ] as [(LoadPolicy, [CacheFixture.Source])])
  func table(policy: LoadPolicy, expected: [CacheFixture.Source]) {
    for (state, source) in zip(State.allCases, expected) {
      var cache = cache(state)
      let outcome = cache.load(.page(), policy, from: Self.confirming)
      #expect(outcome.source == source, "\(state)")
      let asksBehind = policy == .staleWhileRevalidate && state == .stale
      #expect(outcome.background == (asksBehind ? .revalidated : nil), "\(state)")
      #expect(cache.sent.isEmpty == ([.cache, .generated].contains(source) && !asksBehind), "\(state)")
    }
  }

  @Test(
    "without a network, the stored response is served if that is allowed",
    arguments: [
      (.standard, [.cache, .standIn, .failure, .failure, .failure]),
      (.revalidate(), [.standIn, .standIn, .failure, .failure, .failure]),
      (.staleWhileRevalidate, [.cache, .cache, .failure, .failure, .failure]),
      (.reload, [.failure, .failure, .failure, .failure, .failure]),
    ] as [(LoadPolicy, [CacheFixture.Source])])
  func offline(policy: LoadPolicy, expected: [CacheFixture.Source]) {
    for (state, source) in zip(State.allCases, expected) {
      var cache = cache(state)
      let outcome = cache.load(.page(), policy) { _ in .failure(CacheError(.offline, reason: "no network")) }
      #expect(outcome.source == source, "\(state)")
    }
  }

  @Test(
    "a failure that does not concern the network does not permit a stale response",
    arguments: [CacheError.Code.cancelled, .tlsFailure, .refused])
  func otherFailures(code: CacheError.Code) {
    var cache = cache(.stale)
    #expect(cache.load { _ in .failure(CacheError(code, reason: "x")) }.source == .failure)
    #expect(cache.shareable == [true])
  }

  @Test("must-revalidate forbids a stale response, but not a fresh one")
  func mustRevalidateWhileFresh() {
    var cache = CacheFixture()
    _ = cache.load { _ in .success(.ok("Cache-Control: max-age=60, must-revalidate", "ETag: \"a\"")) }
    cache.advance(59)
    let unreachable: CacheFixture.Origin = { _ in .failure(CacheError(.offline, reason: "no network")) }
    #expect(cache.load(.page(), .revalidate(), from: unreachable).source == .standIn)
    cache.advance(1)
    #expect(cache.load(.page(), .revalidate(), from: unreachable).source == .failure)
  }

  @Test("the minimum interval of revalidate counts from the last confirmation, even if the clock is set back")
  func floor() {
    var cache = cache(.stale)
    let policy = LoadPolicy.revalidate(atMostEvery: .seconds(60))
    cache.advance(50)
    #expect(cache.load(.page(), policy, from: Self.confirming).source == .revalidated)
    cache.advance(59)
    #expect(cache.load(.page(), policy, from: Self.confirming).source == .cache)
    cache.advance(-60)
    #expect(cache.load(.page(), policy, from: Self.confirming).source == .revalidated)
  }

  @Test(
    "revalidate uses a response that is fresh and immutable (RFC 8246), unless the request refuses it or anyone could forge it",
    arguments: [
      // response, request, scheme, elapsed seconds, use of the stored response
      ("max-age=60, immutable", "x", "https", 59, .fullyCached),
      ("max-age=60, immutable", "x", "https", 60, .conditionallyCached),
      ("max-age=60, immutable", "x", "http", 0, .conditionallyCached),
      ("max-age=60, immutable, no-cache", "x", "https", 0, .conditionallyCached),
      ("max-age=60", "x", "https", 0, .conditionallyCached), ("immutable", "x", "https", 0, .conditionallyCached),
      ("max-age=60, immutable", "no-cache", "https", 0, .conditionallyCached),
      ("max-age=60, immutable", "max-age=0", "https", 0, .conditionallyCached),
      ("max-age=60, immutable", "max-age=10", "https", 11, .conditionallyCached),
    ] as [(String, String, String, Int64, CacheUse)])
  func immutable(response: String, request: String, scheme: String, seconds: Int64, expected: CacheUse) {
    var page = HTTPRequest.page(.get, "Cache-Control: \(request)")
    page.scheme = scheme
    let stored = HTTPResponse.ok("Cache-Control: \(response)", "ETag: \"a\"")
    #expect(cacheUse(of: stored, page, after: seconds, .revalidate()) == expected)
    #expect(cacheUse(of: stored, page, after: seconds, .reload) == .notCached)
  }

  @Test("reload bypasses intermediate caches, unless the caller sets Cache-Control")
  func reload() {
    var cache = cache(.fresh)
    _ = cache.load(.page(), .reload, from: Self.confirming)
    _ = cache.load(.page(.get, "Cache-Control: max-age=0"), .reload, from: Self.confirming)
    #expect(cache.sent.map { $0.headerFields[.cacheControl] } == ["no-cache", "max-age=0"])
    #expect(cache.sent.allSatisfy { $0.headerFields[.ifNoneMatch] == nil })
    #expect(cache.entries.count == 1)
  }

  @Test("a miss with cacheOnly is a 504")
  func cacheOnly() {
    var cache = CacheFixture()
    #expect(cache.load(.page(), .cacheOnly) { _ in .success(.ok()) }.response?.status.code == 504)
    #expect(cache.load(.page(.post), .cacheOnly) { _ in .success(.ok()) }.response?.status.code == 504)
    #expect(cache.sent.isEmpty)
  }

  @Test(
    "only GET and HEAD are served from the cache",
    arguments: [HTTPRequest.Method.post, .put, .delete, .options, .trace, .patch, .connect])
  func methods(method: HTTPRequest.Method) {
    for policy in [LoadPolicy.standard, .cacheFirst, .revalidate(), .reload, .staleWhileRevalidate] {
      var cache = cache(.fresh)
      #expect(cache.load(.page(method), policy) { _ in .success(.ok()) }.source == .network)
      #expect(cache.sent == [.page(method)])
    }
  }
}
