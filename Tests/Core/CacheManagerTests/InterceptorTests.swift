import CacheCore
import CacheManager
import CacheTesting
import ETagValidation
import Foundation
import HTTPTypes
import Testing

@Suite("Interceptors")
struct InterceptorTests {
  @Test("a field that is set before the lookup is sent, and affects coalescing and Vary")
  func fields() async throws {
    let language = Lock("de")
    let fixture = try ManagerFixture {
      $0.interceptor = RequestInterceptor(willLookUp: { $0.headerFields[.acceptLanguage] = language.withLock { $0 } })
    }
    fixture.network.serve(fixture.url) {
      .ok($0.headerFields[.acceptLanguage] ?? "-", cacheControl: "max-age=60", fields: [.vary: "Accept-Language"])
    }
    let german = try await fixture.manager.load(fixture.url)
    language.withLock { $0 = "fr" }

    let french = try await fixture.manager.load(fixture.url)
    let again = try await fixture.manager.load(fixture.url)

    #expect([german, french, again].map(\.text) == ["de", "fr", "fr"])
    #expect([german, french, again].map(\.source) == [.network, .network, .memory])
  }

  @Test("a URL that is changed before the lookup is loaded, and the response is stored under it")
  func resource() async throws {
    let fixture = try ManagerFixture { $0.interceptor = RequestInterceptor(willLookUp: { $0.path = "/changed" }) }
    let changed = try fixture.url("/changed")
    fixture.network.respond(to: changed, with: .ok("bytes", cacheControl: "max-age=60"))

    let resource = try await fixture.manager.load(fixture.url)

    #expect(resource.url == changed && resource.key.resource == changed.absoluteString)
    #expect(try await fixture.manager.lookup(fixture.url) == .memory(isFresh: true))
  }

  @Test("a refusal ends the load in every form, without a request", arguments: LoadForm.all)
  func refusal(_ form: LoadForm) async throws {
    let fixture = try ManagerFixture()
    let options = RequestOptions {
      $0.interceptor = .use(RequestInterceptor(willLookUp: { _ in throw CacheError(.refused, reason: "not today") }))
    }

    let error = await #expect(throws: CacheError.self) { try await form.load(fixture.manager, fixture.url, options) }

    #expect(error?.code == .refused && error?.reason == "not today" && error?.url == fixture.url.absoluteString)
    #expect(fixture.network.requests.isEmpty)
  }

  @Test("a request's own interceptor replaces the manager's, and hits in memory stay synchronous")
  func ownInterceptor() async throws {
    let fixture = try ManagerFixture {
      $0.interceptor = RequestInterceptor(willLookUp: { $0.headerFields[.accept] = "manager" })
    }
    fixture.network.serve(fixture.url) { .ok($0.headerFields[.accept] ?? "-", cacheControl: "max-age=60") }
    let own = RequestInterceptor(willLookUp: { $0.headerFields[.accept] = "own" })
    let request = ResourceRequest(fixture.url, options: RequestOptions { $0.interceptor = .use(own) })
    _ = try await fixture.manager.load(request)

    #expect(fixture.manager.cachedInMemory(request, as: .bytes)?.text == "own")
  }

  @Test("a redirect keeps the fields that were set before the lookup, and an alternative is intercepted itself")
  func followUps() async throws {
    let calls = Counter()
    let fixture = try ManagerFixture {
      $0.interceptor = RequestInterceptor(willLookUp: { request in
        calls.increment()
        request.headerFields[.accept] = request.authority
      })
    }
    let mirror = try #require(URL(string: "https://mirror.example/x"))
    fixture.network.respond(to: fixture.url, with: .redirect(to: "/second"))
    fixture.network.respond(to: try fixture.url("/second"), with: .failure(.connectionLost))
    fixture.network.respond(to: mirror, with: .ok("bytes"))

    _ = try await fixture.manager.load(fixture.url, options: RequestOptions { $0.alternatives = [.mirror(mirror)] })

    #expect(calls.value == 2)
    #expect(fixture.network.requests.map { $0.headerFields[.accept] } == ["example.com", "example.com", "mirror.example"])
  }

  @Test("an HTTP request is intercepted once before the lookup, unchanged")
  func exchange() async throws {
    let seen = Lock<[HTTPRequest]>([])
    let fixture = try ManagerFixture {
      $0.interceptor = RequestInterceptor(willLookUp: { request in seen.withLock { $0.append(request) } })
    }
    fixture.network.respond(to: fixture.url, with: .ok("bytes"))
    let request = try HTTPRequest(resource: fixture.url, headerFields: [.accept: "text/plain"])

    _ = try await fixture.manager.respond(to: request).body.collect()

    #expect(seen.withLock { $0 } == [request])
  }

  // MARK: Before sending

  @Test("the interceptor sees each request: the first one, redirects, alternatives and revalidations")
  func sending() async throws {
    let signature = Counter()
    let fixture = try ManagerFixture {
      $0.interceptor = RequestInterceptor(willSend: { request in
        signature.increment()
        request.head.headerFields[.userAgent] = "App/\(signature.value)"
      })
    }
    let second = try fixture.url("/second")
    let mirror = try #require(URL(string: "https://mirror.example/x"))
    fixture.network.respond(to: fixture.url, with: .redirect(to: "/second"))
    fixture.network.respond(to: second, with: .failure(.connectionLost))
    fixture.network.respond(to: mirror, with: .ok("bytes"))
    let stale = try fixture.url("/stale")
    fixture.network.respond(to: stale, with: .ok("bytes", etag: "\"1\""), .notModified(etag: "\"1\""))

    let options = RequestOptions { $0.alternatives = [.mirror(mirror)] }
    _ = try await fixture.manager.load(fixture.url, options: options)
    for _ in 1...2 { _ = try await fixture.manager.load(stale) }

    let agents = fixture.network.requests.map { $0.headerFields[.userAgent] }
    #expect(agents == (1...5).map { "App/\($0)" })
  }

  @Test("a field that is set before sending is not part of the stored request, and the response is found without it")
  func sendingIsBelowTheCache() async throws {
    let fixture = try ManagerFixture {
      $0.interceptor = RequestInterceptor(willSend: { $0.head.headerFields[.accept] = "image/png" })
    }
    fixture.network.serve(fixture.url) {
      .ok($0.headerFields[.accept] ?? "-", cacheControl: "max-age=60", fields: [.vary: "Accept"])
    }

    let first = try await fixture.manager.load(fixture.url)
    let second = try await fixture.manager.load(
      fixture.url, options: RequestOptions { $0.interceptor = .disabled })

    #expect([first, second].map(\.text) == ["image/png", "image/png"] && second.source == .memory)
  }

  @Test("an interceptor without a lookup stage does not slow down the plain memory lookup")
  func sendingKeepsHitsPlain() async throws {
    let calls = Counter()
    let fixture = try ManagerFixture { $0.interceptor = RequestInterceptor(willSend: { _ in calls.increment() }) }
    fixture.network.respond(to: fixture.url, with: .ok("bytes", cacheControl: "max-age=60"))
    _ = try await fixture.manager.load(fixture.url)

    #expect(fixture.manager.cachedInMemory(fixture.url)?.text == "bytes")
    #expect(calls.value == 1)
  }

  struct Locked: Error {}

  @Test("a refusal before sending ends the load, and nothing is sent", arguments: LoadForm.all)
  func refusedSending(_ form: LoadForm) async throws {
    let fixture = try ManagerFixture { $0.interceptor = RequestInterceptor(willSend: { _ in throw Locked() }) }

    let error = await #expect(throws: CacheError.self) {
      try await form.load(fixture.manager, fixture.url, RequestOptions())
    }

    #expect(error?.code == .refused && error?.underlying is Locked && fixture.network.requests.isEmpty)
  }

  @Test("loads with different fields before sending are not coalesced")
  func sendingAndCoalescing() async throws {
    let gate = Gate()
    let fixture = try ManagerFixture()
    fixture.network.serve(fixture.url) { .ok($0.headerFields[.accept] ?? "-").held(by: gate) }
    func options(_ accept: String) -> RequestOptions {
      RequestOptions { $0.interceptor = .use(RequestInterceptor(willSend: { $0.head.headerFields[.accept] = accept })) }
    }

    async let one = fixture.manager.load(fixture.url, options: options("a"))
    async let two = fixture.manager.load(fixture.url, options: options("b"))
    await gate.arrived(2)
    gate.open()

    #expect(try await [one.text, two.text] == ["a", "b"])
  }
}
