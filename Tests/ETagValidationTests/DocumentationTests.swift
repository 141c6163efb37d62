import CacheCore
import CacheTesting
import ETagValidation
import HTTPTypes
import Testing

/// As in `Docs/ETagValidation.md`.
private struct TinyCache {
  var entries: [(variant: String, metadata: StoredMetadata, body: String)] = []
  let validator = ETagValidator()
  let clock: any CacheClock
  let origin: (HTTPRequest) -> (head: HTTPResponse, body: String)

  mutating func load(_ request: HTTPRequest, policy: LoadPolicy = .standard) -> String? {
    let plan = validator.plan(request, policy: policy, stored: entries.map(\.metadata), now: clock.now)
    guard case .fetch(let head, let fallback) = plan else {
      if case .use(let index, _) = plan { return entries[index].body }
      return nil  // `.answer`: 504, the network was out of bounds
    }
    let requestTime = clock.now
    let answer = origin(head)
    let verdict = validator.judge(
      .success(answer.head), to: request, sent: head, fallback: fallback, stored: entries.map(\.metadata),
      requestTime: requestTime, now: clock.now, revision: .mint())
    switch verdict {
    case .freshen(let index, let metadata):
      entries[index].metadata = metadata
      return entries[index].body
    case .store(let variant, let metadata, let dropping):
      for index in dropping.sorted(by: >) { entries.remove(at: index) }
      entries.append((variant, metadata, answer.body))
      return answer.body
    case .pass: return answer.body
    case .refetch: return origin(request).body
    case .serveStale(let index): return entries[index].body
    }
  }
}

@Suite("The documentation's cache")
struct DocumentationTests {
  @Test("the snippet asks the origin as often as it says")
  func snippet() {
    let clock = ManualClock()
    var statuses: [Int] = []
    let page = HTTPRequest(method: .get, scheme: "https", authority: "example.com", path: "/")
    withoutActuallyEscaping(
      { (request: HTTPRequest) -> (head: HTTPResponse, body: String) in
        let isCurrent = request.headerFields[.ifNoneMatch] == "\"1\""
        statuses.append(isCurrent ? 304 : 200)
        let fields: HTTPFields = [.eTag: "\"1\"", .cacheControl: "max-age=60"]
        return (HTTPResponse(status: isCurrent ? .notModified : .ok, headerFields: fields), isCurrent ? "" : "hello")
      },
      do: { origin in
        var cache = TinyCache(clock: clock, origin: origin)
        #expect(cache.load(page, policy: .cacheOnly) == nil)
        #expect(cache.load(page) == "hello")
        #expect(cache.load(page) == "hello")
        #expect(cache.load(page, policy: .revalidate()) == "hello")
        clock.advance(by: .seconds(60))
        #expect(cache.load(page) == "hello")
      })
    #expect(statuses == [200, 304, 304])
  }
}
