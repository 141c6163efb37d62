import CacheCore
import CacheManager
import CacheTesting
import Foundation
import HTTPTypes
import MemoryStore
import Testing

@Suite("International hosts")
struct InternationalHostTests {
  private static let spellings = [
    "https://bücher.example/a", "https://BÜCHER。example/a", "https://b%C3%BCcher.example/a", "https://xn--bcher-kva.example/a",
    "https://XN--BCHER-KVA.example:443/a",
  ]
  private static let ascii = "xn--bcher-kva.example"

  private func url(_ text: String) throws -> URL { try #require(URL(string: text)) }

  /// Returns a manager that has loaded the URL in one spelling.
  private func loaded(_ text: String = spellings[0]) async throws -> ManagerFixture {
    let fixture = try ManagerFixture()
    fixture.network.serve(try url(text)) { _ in .ok("x", etag: "\"1\"", cacheControl: "max-age=600") }
    _ = try await fixture.manager.load(url(text))
    return fixture
  }

  @Test("a response is found by every spelling of its host, in memory and on disk", arguments: spellings)
  func oneKey(first: String) async throws {
    let fixture = try await loaded(first)
    for other in Self.spellings {
      #expect(try await fixture.manager.load(url(other)).source == .memory)
      fixture.restart()
      #expect(try await fixture.manager.load(url(other)).source == .disk)
    }
    #expect(fixture.network.requests.map { $0.authority?.lowercased() }.allSatisfy { $0?.hasPrefix(Self.ascii) == true })
    #expect(fixture.network.requests.count == 1)
  }

  @Test(
    "an HTTP request in any spelling uses the same entry, and is sent with the ASCII host",
    arguments: [
      "bücher.example", "b%C3%BCcher.example", "xn--bcher-kva.example",
    ])
  func respond(authority: String) async throws {
    let fixture = try ManagerFixture()
    fixture.network.serve(try url(Self.spellings[3])) { _ in .ok("x", cacheControl: "max-age=600") }
    for _ in 0..<2 {
      let request = HTTPRequest(method: .get, scheme: "https", authority: authority, path: "/a")
      #expect(try await fixture.manager.respond(to: request).body.collect() == Data("x".utf8))
    }
    #expect(fixture.network.requests.map(\.authority) == [Self.ascii])
    #expect(try await fixture.manager.load(url(Self.spellings[0])).source == .memory)
  }

  @Test(
    "leading zeros of a port do not matter",
    arguments: ["example.com:0443", "example.com:00443", "example.com", "example.com:443"])
  func port(authority: String) async throws {
    let fixture = try ManagerFixture()
    fixture.network.serve(try url("https://example.com/a")) { _ in .ok("x", cacheControl: "max-age=600") }
    let request = HTTPRequest(method: .get, scheme: "https", authority: authority, path: "/a")
    #expect(try await fixture.manager.respond(to: request).body.collect() == Data("x".utf8))
    #expect(try await fixture.manager.load(url("https://example.com/a")).source == .memory)
    #expect(try await fixture.manager.load(url("https://example.com:0443/a")).source == .memory)
    #expect(fixture.network.requests.count == 1)
  }

  @Test("a purge by either spelling removes the response", arguments: spellings, spellings)
  func purge(loaded text: String, purged other: String) async throws {
    let fixture = try await loaded(text)
    #expect(try await fixture.manager.purge(.url(url(other)), .soft) == 1)
    #expect(try await fixture.manager.lookup(url(text)) == .memory(isFresh: false))
    #expect(try await fixture.manager.purge(.url(url(other))) == 1)
    #expect(try await !fixture.manager.contains(url(text)))
  }

  @Test("a purge by a prefix in either spelling removes the response", arguments: spellings)
  func purgePrefix(text: String) async throws {
    let fixture = try await loaded()
    let prefix = try url(text).deletingLastPathComponent()
    #expect(try await fixture.manager.purge(.prefix(prefix)) == 1)
    #expect(try await !fixture.manager.contains(url(Self.spellings[3])))
  }

  @Test(
    "a redirect can lead to an international host, and two spellings of it are one origin",
    arguments: ["//bücher.example/b", "https://b%C3%BCcher.example/b", "/b"])
  func redirect(location: String) async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: try url(Self.spellings[3]), with: .redirect(to: location))
    fixture.network.respond(to: try url("https://xn--bcher-kva.example/b"), with: .ok("there", cacheControl: "max-age=600"))
    let fields: HTTPFields = [.authorization: "Bearer secret", .cookie: "a=b"]

    let resource = try await fixture.manager.load(ResourceRequest(url(Self.spellings[3]), headerFields: fields))

    #expect(resource.text == "there")
    #expect(fixture.network.requests.map(\.authority) == [Self.ascii, Self.ascii])
    #expect(fixture.network.requests.map { $0.headerFields[.authorization] } == ["Bearer secret", "Bearer secret"])
    #expect(fixture.network.requests.map { $0.headerFields[.cookie] } == ["a=b", "a=b"])
  }

  @Test("credentials are not sent to another international host")
  func otherOrigin() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: try url(Self.spellings[0]), with: .redirect(to: "https://bucher.example/b"))
    fixture.network.respond(to: try url("https://bucher.example/b"), with: .redirect(to: "https://büchər.example/c"))
    fixture.network.respond(to: try url("https://büchər.example/c"), with: .ok("there"))
    let fields: HTTPFields = [.authorization: "Bearer secret"]

    _ = try await fixture.manager.load(ResourceRequest(url(Self.spellings[0]), headerFields: fields))

    #expect(fixture.network.requests.map { $0.headerFields[.authorization] } == ["Bearer secret", nil, nil])
  }

  @Test("a redirect to a host without an ASCII form is refused by name", arguments: ["https://ü..example/b", "https://a%2Fb/"])
  func refusedRedirect(location: String) async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: .redirect(to: location))
    let error = try await fixture.failure(fixture.url)
    #expect(error.code == .redirectRefused && error.reason.contains("the host '"))
  }

  @Test("an interceptor may name an international host, before the lookup and after a redirect")
  func rewritten() async throws {
    let fixture = try ManagerFixture()
    let target = try url("https://xn--bcher-kva.example/a")
    fixture.network.serve(fixture.url) { _ in .redirect(to: "/elsewhere") }
    fixture.network.serve(target) { _ in .ok("there", cacheControl: "max-age=600") }
    let afterRedirect = RequestOptions {
      $0.interceptor = .use(
        RequestInterceptor(willRedirect: { ($0.request.authority, $0.request.path) = ("b%C3%BCcher.example", "/a") }))
    }
    let beforeLookup = RequestOptions {
      $0.interceptor = .use(RequestInterceptor(willLookUp: { ($0.authority, $0.path) = ("bücher.example", "/a") }))
    }

    #expect(try await fixture.manager.load(fixture.url, options: afterRedirect).text == "there")
    #expect(fixture.network.requests.last?.authority == Self.ascii)
    #expect(try await fixture.manager.load(fixture.url, options: beforeLookup).source == .memory)
  }

  @Test("a host without an ASCII form is an error that names it, and nothing is sent")
  func refused() async throws {
    let fixture = try ManagerFixture()
    let error = try await fixture.failure(url("https://a%2Fb.example/"))
    #expect(error.code == .invalidURL && error.reason.contains("the host 'a/b.example'"))
    let request = HTTPRequest(method: .get, scheme: "https", authority: "ü..example", path: "/")
    let refusal = await #expect(throws: CacheError.self) { _ = try await fixture.manager.respond(to: request) }
    #expect(refusal?.code == .invalidURL)
    #expect(fixture.network.requests.isEmpty)
  }
}
