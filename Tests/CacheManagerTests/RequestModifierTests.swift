import CacheCore
import CacheManager
import CacheTesting
import ETagValidation
import Foundation
import HTTPTypes
import Testing

@Suite("Request modifiers")
struct RequestModifierTests {
  @Test("what a modifier sets goes out, and takes part in what is shared and in Vary")
  func fields() async throws {
    let language = Lock("de")
    let fixture = try ManagerFixture {
      $0.requestModifier = { $0.headerFields[.acceptLanguage] = language.withLock { $0 } }
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

  @Test("a URL that a modifier changes is what is loaded, and what it is filed under")
  func resource() async throws {
    let fixture = try ManagerFixture { $0.requestModifier = { $0.path = "/changed" } }
    let changed = try fixture.url("/changed")
    fixture.network.answer(changed, .ok("bytes", cacheControl: "max-age=60"))

    let resource = try await fixture.manager.load(fixture.url)

    #expect(resource.url == changed && resource.key.resource == changed.absoluteString)
    #expect(try await fixture.manager.lookup(fixture.url) == .memory(isFresh: true))
  }

  @Test("a refusal ends the load in every form, without a request", arguments: LoadForm.all)
  func refusal(_ form: LoadForm) async throws {
    let fixture = try ManagerFixture()
    let options = RequestOptions {
      $0.requestModifier = { _ throws(CacheError) in throw CacheError(.refused, reason: "not today") }
    }

    let error = await #expect(throws: CacheError.self) { try await form.load(fixture.manager, fixture.url, options) }

    #expect(error?.code == .refused && error?.reason == "not today" && error?.url == fixture.url.absoluteString)
    #expect(fixture.network.requests.isEmpty)
  }

  @Test("a request's own modifier takes the manager's place, and hits in memory stay synchronous")
  func ownModifier() async throws {
    let fixture = try ManagerFixture { $0.requestModifier = { $0.headerFields[.accept] = "manager" } }
    fixture.network.serve(fixture.url) { .ok($0.headerFields[.accept] ?? "-", cacheControl: "max-age=60") }
    let request = ResourceRequest(
      fixture.url, options: RequestOptions { $0.requestModifier = { $0.headerFields[.accept] = "own" } })
    _ = try await fixture.manager.load(request)

    #expect(fixture.manager.cachedInMemory(request, as: .bytes)?.text == "own")
  }

  @Test("a redirect takes along what a modifier has set, and is not modified again; an alternative is, by itself")
  func followUps() async throws {
    let calls = Counter()
    let fixture = try ManagerFixture {
      $0.requestModifier = { request in
        calls.increment()
        request.headerFields[.accept] = request.authority
      }
    }
    let mirror = try #require(URL(string: "https://mirror.example/x"))
    fixture.network.answer(fixture.url, .redirect(to: "/second"))
    fixture.network.answer(try fixture.url("/second"), .failure(.connectionLost))
    fixture.network.answer(mirror, .ok("bytes"))

    _ = try await fixture.manager.load(fixture.url, options: RequestOptions { $0.alternatives = [.mirror(mirror)] })

    #expect(calls.value == 2)
    #expect(fixture.network.requests.map { $0.headerFields[.accept] } == ["example.com", "example.com", "mirror.example"])
  }
}
