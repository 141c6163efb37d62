import CacheCore
import CacheManager
import CacheTesting
import Foundation
import HTTPTypes
import Testing

@Suite("Interceptors of redirects")
struct RedirectInterceptorTests {
  let fixture: ManagerFixture
  let second: URL
  let third: URL

  init() throws {
    fixture = try ManagerFixture()
    (second, third) = (try fixture.url("/second"), try fixture.url("/third"))
    fixture.network.respond(to: fixture.url, with: .redirect(to: "/second"))
    fixture.network.respond(to: second, with: .redirect(to: "/third", status: .temporaryRedirect))
    fixture.network.respond(to: third, with: .ok("third"))
  }

  private func options(_ change: @escaping @Sendable (inout Redirection) throws -> Void) -> RequestOptions {
    RequestOptions { $0.interceptor = .use(RequestInterceptor(willRedirect: { try change(&$0) })) }
  }

  @Test("an interceptor receives each redirect: both URLs, the status, the number and the next request")
  func sees() async throws {
    let log = Lock<[Redirection]>([])
    let options = options { redirection in
      let seen = redirection
      log.withLock { $0.append(seen) }
    }

    let resource = try await fixture.manager.load(fixture.url, options: options)

    let seen = log.withLock { $0 }
    #expect(resource.text == "third" && resource.redirects == [fixture.url, second])
    #expect(seen.map(\.from) == [fixture.url, second] && seen.map(\.to) == [second, third])
    #expect(seen.map(\.response.status.code) == [302, 307] && seen.map(\.number) == [1, 2])
    #expect(seen.map(\.request.path) == ["/second", "/third"])
  }

  @Test("an interceptor may send another request instead, to another URL and with other fields")
  func rewrites() async throws {
    let other = try #require(URL(string: "https://other.example/x"))
    fixture.network.respond(to: other, with: .ok("other"))
    let request = try HTTPRequest(resource: other, headerFields: [.authorization: "Bearer for other"])

    let resource = try await fixture.manager.load(fixture.url, options: options { $0.request = request })

    #expect(resource.text == "other" && resource.url == other && resource.redirects == [fixture.url])
    #expect(fixture.network.requests(for: other).first?.headerFields[.authorization] == "Bearer for other")
  }

  @Test("a redirect that is not followed is a response like any other", arguments: [true, false])
  func stops(isAccepted: Bool) async throws {
    var options = options { $0.isFollowed = false }
    if isAccepted { options.acceptedStatuses = AcceptedStatuses(200..<400) }

    if isAccepted {
      let resource = try await fixture.manager.load(fixture.url, options: options)
      #expect(resource.response.status == .found && resource.url == fixture.url && resource.redirects.isEmpty)
    } else {
      let error = try await fixture.failure(fixture.url, options)
      #expect(error.code == .unacceptableStatus && error.status == 302)
    }
    #expect(fixture.network.requests.count == 1)
  }

  @Test("an interceptor may refuse a redirect with a reason")
  func refuses() async throws {
    let error = try await fixture.failure(
      fixture.url, options { if $0.number == 2 { throw CacheError(.refused, reason: "far enough") } })

    #expect(error.code == .redirectRefused && error.reason.contains("far enough"))
    #expect(error.url == fixture.url.absoluteString && error.status == 307)
    #expect(fixture.network.requests.count == 2)
  }

  @Test("an interceptor also receives redirects from the cache")
  func cached() async throws {
    let moved = try fixture.url("/moved")
    fixture.network.respond(
      to: moved, with: .response(.movedPermanently, fields: [.location: "/third", .cacheControl: "max-age=60"]))
    _ = try await fixture.manager.load(moved)

    let error = try await fixture.failure(moved, options { _ in throw CacheError(.refused, reason: "no") })

    #expect(error.code == .redirectRefused)
    #expect(fixture.network.requests(for: moved).count == 1)
  }

  @Test("an interceptor cannot redirect to another scheme, to plain HTTP, or beyond the limit")
  func bounds() async throws {
    let file = try HTTPRequest(resource: #require(URL(string: "file:///etc/passwd")))
    let plain = try HTTPRequest(resource: #require(URL(string: "http://example.com/x")))
    let circle = try HTTPRequest(resource: fixture.url)
    fixture.network.serve(fixture.url) { _ in .redirect(to: "/second") }

    #expect(try await fixture.failure(fixture.url, options { $0.request = file }).code == .redirectRefused)
    #expect(try await fixture.failure(fixture.url, options { $0.request = plain }).code == .redirectRefused)
    #expect(try await fixture.failure(fixture.url, options { $0.request = circle }).code == .tooManyRedirects)
  }

  @Test("a redirect from https to http is followed only if that is allowed, and an interceptor may change it to https")
  func insecure() async throws {
    let secure = try fixture.url("/secure")
    let (plain, mended) = (try #require(URL(string: "http://example.com/plain")), try fixture.url("/plain"))
    fixture.network.serve(secure) { _ in .redirect(to: "http://example.com/plain") }
    fixture.network.serve(plain) { _ in .ok("plain") }
    fixture.network.serve(mended) { _ in .ok("mended") }

    let refusal = try await fixture.failure(secure)
    let allowed = try await fixture.manager.load(secure, options: RequestOptions { $0.allowsInsecureRedirects = true })
    let better = try await fixture.manager.load(
      secure,
      options: options { $0.request.scheme = "https" })

    #expect(refusal.code == .redirectRefused)
    #expect(allowed.text == "plain" && allowed.url == plain)
    #expect(better.text == "mended" && better.url == mended)
  }

  @Test("loads with different redirect interceptors are not coalesced; loads with the same one are")
  func sharing() async throws {
    let gate = Gate()
    let url = try fixture.url("/shared")
    fixture.network.serve(url) { _ in .ok("bytes").held(by: gate) }
    let interceptor = RequestInterceptor(willRedirect: { _ in })
    let shared = RequestOptions { $0.interceptor = .use(interceptor) }

    async let one = fixture.manager.load(url, options: shared)
    async let two = fixture.manager.load(url, options: shared)
    async let three = fixture.manager.load(url, options: options { _ in })
    await gate.arrived(2)
    try await Polling.until { fixture.observer.joins >= 1 }
    gate.open()

    #expect(try await [one.text, two.text, three.text] == ["bytes", "bytes", "bytes"])
    #expect(fixture.network.requests(for: url).count == 2)
  }
}
