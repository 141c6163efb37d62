import CacheCore
import CacheTesting
import Foundation
import HTTPTypes
import Testing

@Suite("Identities of requests")
struct RequestIdentityTests {
  private let url: URL
  private static let (composed, decomposed) = ("\u{E9}", "e\u{301}")

  init() throws { url = try #require(URL(string: "https://example.com/a")) }

  private func request(_ change: (inout ResourceRequest) -> Void = { _ in }) -> ResourceRequest {
    var request = ResourceRequest(url)
    change(&request)
    return request
  }

  @Test("requests differ by name, partition, method, fields, stores, and by the body of a GET")
  func differences() throws {
    let other = try #require(URL(string: "https://example.com/b"))
    let requests = [
      request(), request { $0.url = other }, request { $0.options.key = url.absoluteString },
      request { $0.options.partition = "a" }, request { $0.options.partition = "b" },
      request { $0.method = .head }, request { $0.method = .post }, request { $0.headerFields[.acceptLanguage] = "de" },
      request { $0.headerFields[.acceptLanguage] = "en" }, request { $0.body = RequestBody(Data()) },
      request { $0.options.memory = .disabled }, request { $0.options.store = .disabled },
      request { $0.options.store = .use(VolatileStore()) }, request { $0.options.store = .use(VolatileStore()) },
      request { $0.options.key = Self.composed }, request { $0.options.key = Self.decomposed },
      request { $0.options.partition = Self.composed }, request { $0.options.partition = Self.decomposed },
    ]
    #expect(Set(requests.map { RequestIdentity($0) }).count == requests.count)
  }

  @Test("with a key, the URL has no effect, and the key of the manager stands behind that of the options")
  func keys() throws {
    let other = try #require(URL(string: "https://example.com/b"))
    let key = RequestIdentity(request { $0.options.key = "key" })
    #expect(RequestIdentity(ResourceRequest(other), key: "key") == key)
    #expect(RequestIdentity(request { ($0.url, $0.options.key) = (other, "key") }, key: "manager") == key)
    #expect(RequestIdentity(request(), key: "manager") != key)
  }

  @Test("a relative URL equals its absolute form, a store that is adapted the manager's, and an empty partition none")
  func equalForms() throws {
    let identity = RequestIdentity(request())
    let relative = try #require(URL(string: "a", relativeTo: URL(string: "https://example.com")))
    #expect(RequestIdentity(ResourceRequest(relative)) == identity)
    #expect(RequestIdentity(request { $0.options.store = .adapted { $0 } }) == identity)
    #expect(RequestIdentity(request { $0.options.partition = "" }) == identity)
    let store = VolatileStore()
    let own = request { $0.options.store = .use(store) }
    #expect(RequestIdentity(own) == RequestIdentity(own))
  }

  @Test("the body of a request with another method, the policy and the interceptor do not count")
  func ignoredParts() {
    let post = RequestIdentity(request { $0.method = .post })
    #expect(RequestIdentity(request { ($0.method, $0.body) = (.post, RequestBody(Data())) }) == post)
    let identity = RequestIdentity(request())
    #expect(RequestIdentity(request { $0.options.policy = .reload }) == identity)
    #expect(RequestIdentity(request { $0.options.interceptor = .disabled }) == identity)
  }
}
