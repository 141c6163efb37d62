import CacheCore
import ETagValidation
import HTTPTypes
import Testing

@Suite("Load policies")
struct PolicyTests {
  enum State: String, CaseIterable { case fresh, stale, requiresRevalidation, mustRevalidate, missing }

  /// A shelf with one answer in that state.
  private func shelf(_ state: State) -> Shelf {
    var shelf = Shelf()
    let directives =
      switch state {
      case .fresh, .missing: "max-age=100"
      case .stale: "max-age=5"
      case .requiresRevalidation: "max-age=100, no-cache"
      case .mustRevalidate: "max-age=5, must-revalidate"
      }
    if state != .missing { _ = shelf.load { _ in .success(.ok("Cache-Control: \(directives)", "ETag: \"a\"")) } }
    shelf.advance(10)
    shelf.sent = []
    return shelf
  }

  private static func confirming(_ head: HTTPRequest) -> Result<HTTPResponse, CacheError> {
    .success(head.headerFields[.ifNoneMatch] == "\"a\"" ? .head(304) : .ok())
  }

  @Test(
    "each policy treats each state of what is stored as its table says",
    arguments: [
      (.standard, [.cache, .revalidated, .revalidated, .revalidated, .network]),
      (.cacheFirst, [.cache, .cache, .cache, .cache, .network]),
      (.memoryElseReload, [.cache, .cache, .cache, .cache, .network]),
      (.cacheOnly, [.cache, .cache, .cache, .cache, .madeHere]),
      (.reload, [.network, .network, .network, .network, .network]),
      (.revalidate(), [.revalidated, .revalidated, .revalidated, .revalidated, .network]),
      (.revalidate(atMostEvery: .seconds(11)), [.cache, .cache, .cache, .cache, .network]),
      (.revalidate(atMostEvery: .seconds(10)), [.revalidated, .revalidated, .revalidated, .revalidated, .network]),
      (.revalidate(atMostEvery: .seconds(-1)), [.revalidated, .revalidated, .revalidated, .revalidated, .network]),
      (.staleWhileRevalidate, [.cache, .cache, .revalidated, .revalidated, .network]),
    ] as [(LoadPolicy, [Shelf.Source])])
  func table(policy: LoadPolicy, expected: [Shelf.Source]) {
    for (state, source) in zip(State.allCases, expected) {
      var shelf = shelf(state)
      let outcome = shelf.load(.page(), policy, from: Self.confirming)
      #expect(outcome.source == source, "\(state)")
      let asksBehind = policy == .staleWhileRevalidate && state == .stale
      #expect(outcome.background == (asksBehind ? .revalidated : nil), "\(state)")
      #expect(shelf.sent.isEmpty == ([.cache, .madeHere].contains(source) && !asksBehind), "\(state)")
    }
  }

  @Test(
    "without a network the stored answer stands in where that is allowed",
    arguments: [
      (.standard, [.cache, .standIn, .failure, .failure, .failure]),
      (.revalidate(), [.standIn, .standIn, .failure, .failure, .failure]),
      (.staleWhileRevalidate, [.cache, .cache, .failure, .failure, .failure]),
      (.reload, [.failure, .failure, .failure, .failure, .failure]),
    ] as [(LoadPolicy, [Shelf.Source])])
  func offline(policy: LoadPolicy, expected: [Shelf.Source]) {
    for (state, source) in zip(State.allCases, expected) {
      var shelf = shelf(state)
      let outcome = shelf.load(.page(), policy) { _ in .failure(CacheError(.offline, reason: "no network")) }
      #expect(outcome.source == source, "\(state)")
    }
  }

  @Test(
    "a failure that is not the network's is no reason to show something stale",
    arguments: [CacheError.Code.cancelled, .tlsFailure, .refused])
  func otherFailures(code: CacheError.Code) {
    var shelf = shelf(.stale)
    #expect(shelf.load { _ in .failure(CacheError(code, reason: "x")) }.source == .failure)
    #expect(shelf.shareable == [true])
  }

  @Test("must-revalidate forbids showing it stale, not using it while it is fresh")
  func mustRevalidateWhileFresh() {
    var shelf = Shelf()
    _ = shelf.load { _ in .success(.ok("Cache-Control: max-age=60, must-revalidate", "ETag: \"a\"")) }
    shelf.advance(59)
    let unreachable: Shelf.Origin = { _ in .failure(CacheError(.offline, reason: "no network")) }
    #expect(shelf.load(.page(), .revalidate(), from: unreachable).source == .standIn)
    shelf.advance(1)
    #expect(shelf.load(.page(), .revalidate(), from: unreachable).source == .failure)
  }

  @Test("the floor of revalidate counts from the last confirmation, and a clock that was set back does not extend it")
  func floor() {
    var shelf = shelf(.stale)
    let policy = LoadPolicy.revalidate(atMostEvery: .seconds(60))
    shelf.advance(50)
    #expect(shelf.load(.page(), policy, from: Self.confirming).source == .revalidated)
    shelf.advance(59)
    #expect(shelf.load(.page(), policy, from: Self.confirming).source == .cache)
    shelf.advance(-60)
    #expect(shelf.load(.page(), policy, from: Self.confirming).source == .revalidated)
  }

  @Test("reload asks the caches on the way too, unless the caller speaks to them itself")
  func reload() {
    var shelf = shelf(.fresh)
    _ = shelf.load(.page(), .reload, from: Self.confirming)
    _ = shelf.load(.page(.get, "Cache-Control: max-age=0"), .reload, from: Self.confirming)
    #expect(shelf.sent.map { $0.headerFields[.cacheControl] } == ["no-cache", "max-age=0"])
    #expect(shelf.sent.allSatisfy { $0.headerFields[.ifNoneMatch] == nil })
    #expect(shelf.entries.count == 1)
  }

  @Test("a miss of the cache alone is a 504")
  func cacheOnly() {
    var shelf = Shelf()
    #expect(shelf.load(.page(), .cacheOnly) { _ in .success(.ok()) }.response?.status.code == 504)
    #expect(shelf.load(.page(.post), .cacheOnly) { _ in .success(.ok()) }.response?.status.code == 504)
    #expect(shelf.sent.isEmpty)
  }

  @Test("the answer's own stale-while-revalidate works under the standard policy, to the second")
  func staleWhileRevalidateDirective() {
    var shelf = Shelf()
    _ = shelf.load { _ in .success(.ok("Cache-Control: max-age=5, stale-while-revalidate=10", "ETag: \"a\"")) }
    let first = shelf
    shelf.advance(4)
    #expect(shelf.load(from: Self.confirming).background == nil)
    shelf.advance(10)
    #expect(shelf.load(from: Self.confirming).background == .revalidated)
    shelf = first
    shelf.advance(15)
    #expect(shelf.load(from: Self.confirming).source == .revalidated)
  }

  @Test(
    "only GET and HEAD are answered from what is stored",
    arguments: [HTTPRequest.Method.post, .put, .delete, .options, .trace, .patch, .connect])
  func methods(method: HTTPRequest.Method) {
    for policy in [LoadPolicy.standard, .cacheFirst, .revalidate(), .reload, .staleWhileRevalidate] {
      var shelf = shelf(.fresh)
      #expect(shelf.load(.page(method), policy) { _ in .success(.ok()) }.source == .network)
      #expect(shelf.sent == [.page(method)])
    }
  }
}
