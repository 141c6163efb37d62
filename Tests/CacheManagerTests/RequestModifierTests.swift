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
    let house = try House {
      $0.requestModifier = { $0.headerFields[.acceptLanguage] = language.withLock { $0 } }
    }
    house.network.serve(house.url) {
      .ok($0.headerFields[.acceptLanguage] ?? "-", cacheControl: "max-age=60", fields: [.vary: "Accept-Language"])
    }
    let german = try await house.manager.load(house.url)
    language.withLock { $0 = "fr" }

    let french = try await house.manager.load(house.url)
    let again = try await house.manager.load(house.url)

    #expect([german, french, again].map(\.text) == ["de", "fr", "fr"])
    #expect([german, french, again].map(\.source) == [.network, .network, .memory])
  }

  @Test("a URL that a modifier changes is what is loaded, and what it is filed under")
  func resource() async throws {
    let house = try House { $0.requestModifier = { $0.path = "/changed" } }
    let changed = try house.url("/changed")
    house.network.answer(changed, .ok("bytes", cacheControl: "max-age=60"))

    let resource = try await house.manager.load(house.url)

    #expect(resource.url == changed && resource.key.resource == changed.absoluteString)
    #expect(try await house.manager.lookup(house.url) == .memory(isFresh: true))
  }

  @Test("a refusal ends the load in every form, without a request", arguments: LoadForm.all)
  func refusal(_ form: LoadForm) async throws {
    let house = try House()
    let options = RequestOptions {
      $0.requestModifier = { _ throws(CacheError) in throw CacheError(.refused, reason: "not today") }
    }

    let error = await #expect(throws: CacheError.self) { try await form.load(house.manager, house.url, options) }

    #expect(error?.code == .refused && error?.reason == "not today" && error?.url == house.url.absoluteString)
    #expect(house.network.requests.isEmpty)
  }

  @Test("a request's own modifier takes the manager's place, and hits in memory stay synchronous")
  func ownModifier() async throws {
    let house = try House { $0.requestModifier = { $0.headerFields[.accept] = "manager" } }
    house.network.serve(house.url) { .ok($0.headerFields[.accept] ?? "-", cacheControl: "max-age=60") }
    let request = ResourceRequest(
      house.url, options: RequestOptions { $0.requestModifier = { $0.headerFields[.accept] = "own" } })
    _ = try await house.manager.load(request)

    #expect(house.manager.cachedInMemory(request, as: .bytes)?.text == "own")
  }

  @Test("a redirect takes along what a modifier has set, and is not modified again; an alternative is, by itself")
  func followUps() async throws {
    let calls = Counter()
    let house = try House {
      $0.requestModifier = { request in
        calls.increment()
        request.headerFields[.accept] = request.authority
      }
    }
    let mirror = try #require(URL(string: "https://mirror.example/x"))
    house.network.answer(house.url, .redirect(to: "/second"))
    house.network.answer(try house.url("/second"), .failure(.connectionLost))
    house.network.answer(mirror, .ok("bytes"))

    _ = try await house.manager.load(house.url, options: RequestOptions { $0.alternatives = [.mirror(mirror)] })

    #expect(calls.value == 2)
    #expect(house.network.requests.map { $0.headerFields[.accept] } == ["example.com", "example.com", "mirror.example"])
  }
}
