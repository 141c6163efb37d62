import CacheCore
import CacheManager
import CacheTesting
import ETagValidation
import Foundation
import HTTPTypes
import Testing

@Suite("Cache keys of a manager")
struct ManagerKeyTests {
  let fixture: ManagerFixture

  init() throws {
    fixture = try ManagerFixture { configuration in
      configuration.cacheKey = { request in
        guard request.authority == "example.com", let path = request.path, path.contains("signature=") else { return nil }
        return path.split(separator: "?").first.map(String.init)
      }
    }
    for number in 1...3 {
      fixture.network.serve(try signed(number)) { _ in .ok("\(number)", etag: "\"1\"", cacheControl: "max-age=60") }
    }
  }

  private func signed(_ number: Int) throws -> URL { try fixture.url("/image.png?signature=\(number)") }

  @Test("the signature is sent, and is not a part of the key, in each form", arguments: LoadForm.all)
  func loads(_ form: LoadForm) async throws {
    #expect(try await form.load(fixture.manager, signed(1), RequestOptions()).text == "1")
    #expect(try await form.load(fixture.manager, signed(2), RequestOptions()).source == .memory)
    fixture.restart()
    #expect(try await form.load(fixture.manager, signed(2), RequestOptions()).source == .disk)
    #expect(fixture.network.requests.map(\.path) == ["/image.png?signature=1"])
    #expect(Set(fixture.disk.keys) == [CacheKey(resource: ResourceID.make(uri: "", key: "/image.png"))])
  }

  @Test("the function is called once for a request of an HTTP cache, after the interceptor has changed it")
  func calls() async throws {
    let paths = Lock<[String?]>([])
    let fixture = try ManagerFixture {
      $0.cacheKey = { request in
        paths.withLock { $0.append(request.path) }
        return nil
      }
      $0.interceptor = RequestInterceptor(willLookUp: { $0.path = "/changed" })
    }
    fixture.network.serve(try fixture.url("/changed")) { _ in .ok("a") }

    #expect(try await fixture.send().text == "a")

    #expect(paths.withLock { $0 } == ["/changed"])
  }

  @Test("a value and a response of an HTTP cache have the key too")
  func values() async throws {
    #expect(try await fixture.send(path: "/image.png?signature=1").text == "1")
    #expect(try await fixture.send(path: "/image.png?signature=2").cache.contains("hit"))
    let value = try await fixture.manager.load(signed(3), as: TextTransformFixture().whole)
    #expect(value.value == "1")
    #expect(fixture.manager.cachedInMemory(try signed(2), as: TextTransformFixture().whole)?.value == "1")
    #expect(fixture.network.requests.count == 1)
  }

  @Test("a stale response is revalidated with the signature of the current request")
  func revalidation() async throws {
    _ = try await fixture.manager.load(signed(1))
    fixture.clock.advance(by: .seconds(61))
    fixture.network.serve(try signed(2)) { _ in .notModified(etag: "\"1\"") }

    #expect(try await fixture.manager.load(signed(2)).source == .revalidated)
  }

  @Test("lookups, removals, prefetches and stored bytes by URL find the same entry")
  func lookups() async throws {
    let report = await fixture.manager.prefetch([try signed(1)])
    #expect(report.loaded == 1)
    #expect(await fixture.manager.prefetch([try signed(2)]).skipped == 1)
    #expect(try await fixture.manager.lookup(signed(2)) == .memory(isFresh: true))
    #expect(try await fixture.manager.contains(signed(2)))
    #expect(fixture.manager.cachedInMemory(try signed(2))?.text == "1")
    try await fixture.manager.remove(signed(3))
    #expect(try await fixture.manager.lookup(signed(1)) == .miss)
    try await fixture.manager.store(Data("own".utf8), for: signed(3))
    #expect(try await fixture.manager.load(signed(1)).text == "own")
  }

  enum Removal: CaseIterable { case url, key, prefix, soft }

  @Test("purges by URL, by key and by prefix find the entry", arguments: Removal.allCases)
  func purges(_ removal: Removal) async throws {
    _ = try await fixture.manager.load(signed(1))

    let count =
      switch removal {
      case .url: try await fixture.manager.purge(.url(signed(2)))
      case .key: try await fixture.manager.purge(.key("/image.png"))
      case .prefix: try await fixture.manager.purge(.prefix(fixture.url("/image")))
      case .soft: try await fixture.manager.purge(.url(signed(3)), .soft)
      }

    #expect(count == 1)
    #expect(try await fixture.manager.lookup(signed(1)) == (removal == .soft ? .memory(isFresh: false) : .miss))
  }

  @Test("partitions have separate entries of one key")
  func partitions() async throws {
    let alice = RequestOptions { $0.partition = "alice" }
    _ = try await fixture.manager.load(signed(1), options: alice)

    #expect(try await fixture.manager.load(signed(2)).text == "2")
    #expect(try await fixture.manager.load(signed(3), options: alice).text == "1")
    #expect(try await fixture.manager.purge(.everything, in: .partition("alice")) == 1)
    #expect(try await fixture.manager.load(signed(3)).text == "2")
  }

  @Test("the key of a request takes precedence, and a key of nil means the URL")
  func precedence() async throws {
    let options = RequestOptions { $0.key = "own" }
    fixture.network.respond(to: fixture.url, with: .ok("plain", cacheControl: "max-age=60"))
    _ = try await fixture.manager.load(signed(1))

    #expect(try await fixture.manager.load(signed(2), options: options).text == "2")
    #expect(try await fixture.manager.load(fixture.url).key.resource == fixture.url.absoluteString)
    #expect(fixture.manager.cachedInMemory(fixture.url)?.text == "plain")
  }

  @Test("an empty key means the URL")
  func emptyKey() async throws {
    let fixture = try ManagerFixture { $0.cacheKey = { _ in "" } }
    let other = try fixture.url("/other")
    fixture.network.respond(to: fixture.url, with: .ok("a", cacheControl: "max-age=60"))
    fixture.network.respond(to: other, with: .ok("b", cacheControl: "max-age=60"))

    #expect(try await [fixture.manager.load(fixture.url).text, fixture.manager.load(other).text] == ["a", "b"])
  }

  @Test("the target of a redirect has its own key", arguments: CoalescingCase.Call.allCases)
  func redirects(_ call: CoalescingCase.Call) async throws {
    let count = Counter()
    fixture.network.serve(fixture.url) { _ in
      count.increment()
      return .redirect(to: "/image.png?signature=\(count.value)")
    }
    func text() async throws -> String {
      if call == .load { return try await fixture.manager.load(fixture.url).text }
      let request = try HTTPRequest(resource: fixture.url)
      let options = RequestOptions { $0.writes = .disk }
      let response = try await fixture.manager.respondFollowingRedirects(to: request, storingUpTo: 1 << 20, options: options)
      return String(decoding: try await response.response.body.collect(), as: UTF8.self)
    }

    #expect(try await [text(), text()] == ["1", "1"])
    #expect(fixture.network.requests.filter { $0.path?.contains("signature") == true }.count == 1)
    #expect(try await fixture.manager.lookup(signed(3)) != .miss)
  }

  @Test("an alternative in low quality has its own key")
  func alternatives() async throws {
    fixture.network.respond(to: fixture.url, with: .failure(.networkRestricted))
    let options = RequestOptions { [url = try signed(1)] in $0.alternatives = [.lowData(url)] }

    _ = try await fixture.manager.load(fixture.url, options: options)

    #expect(try await fixture.manager.load(signed(2)).text == "1")
  }

  @Test("an unsafe request removes the entry of its key and those of the URLs that its response names")
  func unsafeMethods() async throws {
    _ = try await fixture.manager.load(signed(1))
    fixture.network.serve(try signed(2)) { _ in .response(.noContent) }
    _ = try await fixture.manager.load(ResourceRequest(signed(2), method: .put))
    #expect(try await fixture.manager.lookup(signed(1)) == .miss)

    _ = try await fixture.manager.load(signed(1))
    fixture.network.serve(fixture.url) { _ in .response(.created, fields: [.location: "/image.png?signature=3"]) }
    _ = try await fixture.send([:], .post, sending: "new")
    #expect(try await fixture.manager.lookup(signed(1)) == .miss)
  }

  @Test("the function receives the request after the interceptor, as a GET")
  func input() async throws {
    let seen = Lock<[HTTPRequest]>([])
    let fixture = try ManagerFixture {
      $0.interceptor = RequestInterceptor(willLookUp: { $0.headerFields[.acceptLanguage] = "de" })
      $0.cacheKey = { request in
        seen.withLock { $0.append(request) }
        return nil
      }
    }
    fixture.network.serve(fixture.url) { _ in .response(.noContent) }

    _ = try await fixture.manager.load(ResourceRequest(fixture.url, method: .put))
    _ = try await fixture.send([:], .head)

    let requests = seen.withLock { $0 }.filter { !$0.headerFields.isEmpty }
    #expect(!requests.isEmpty)
    #expect(requests.allSatisfy { $0.method == .get && $0.headerFields[.acceptLanguage] == "de" })
  }
}
