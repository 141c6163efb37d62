import CacheCore
import CacheTesting
import ETagValidation
import HTTPTypes
import Testing

/// A copy of the example on the module's landing page.
private struct TinyCache {
  var entries: [(variant: String, metadata: StoredMetadata, body: String)] = []
  let validator = ETagValidator()
  let clock: any CacheClock
  let origin: (HTTPRequest) -> (head: HTTPResponse, body: String)

  mutating func load(_ request: HTTPRequest, policy: LoadPolicy = .standard) -> String? {
    let plan = validator.plan(request, policy: policy, stored: entries.map(\.metadata), now: clock.now)
    guard case .fetch(let head, let fallback, _) = plan else {
      if case .use(let index, _) = plan { return reply(index, to: request) }
      return nil  // `.respond`: 504, no request may be sent; `.combine` occurs only with an option
    }
    let requestTime = clock.now
    let response = origin(head)
    let verdict = validator.judge(
      .success(response.head), to: request, sent: head, fallback: fallback, stored: entries.map(\.metadata),
      requestTime: requestTime, now: clock.now, revision: .random())
    switch verdict {
    case .update(let index, let metadata, let changes):
      entries[index].metadata = metadata
      let body = reply(index, to: request)
      apply(changes)
      return body
    case .store(let variant, var metadata, let changes):
      apply(changes)
      metadata.bodyLength = Int64(response.body.utf8.count)
      entries.append((variant, metadata, response.body))
      return response.body
    case .pass(let changes, _):
      apply(changes)
      return response.body
    case .refetch(let unconditional): return origin(unconditional).body
    case .serveStale(let index): return reply(index, to: request)
    }
  }

  /// Returns the body for a request from a stored response: whole, a range, or empty.
  private func reply(_ index: Int, to request: HTTPRequest) -> String {
    let body = entries[index].body
    switch validator.reply(to: request, from: entries[index].metadata, now: clock.now).content {
    case .none: return ""
    case .whole: return body
    case .range(let bytes):
      return String(decoding: Array(body.utf8)[Int(bytes.lowerBound)..<Int(bytes.upperBound)], as: UTF8.self)
    }
  }

  private mutating func apply(_ changes: StoreChanges) {
    for (index, metadata) in changes.updates { entries[index].metadata = metadata }
    for index in changes.drops.sorted(by: >) { entries.remove(at: index) }
    for uri in changes.invalidations { entries.removeAll { ResourceID.uri(of: $0.metadata.request) == uri } }
  }
}

@Suite("The cache in the documentation")
struct DocumentationTests {
  @Test("the example sends the documented number of requests")
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
