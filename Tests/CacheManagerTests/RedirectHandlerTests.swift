import CacheCore
import CacheManager
import CacheTesting
import Foundation
import HTTPTypes
import Testing

@Suite("Redirect handlers")
struct RedirectHandlerTests {
  let fixture: ManagerFixture
  let second: URL
  let third: URL

  init() throws {
    fixture = try ManagerFixture()
    (second, third) = (try fixture.url("/second"), try fixture.url("/third"))
    fixture.network.answer(fixture.url, .redirect(to: "/second"))
    fixture.network.answer(second, .redirect(to: "/third", status: .temporaryRedirect))
    fixture.network.answer(third, .ok("third"))
  }

  private func options(_ decide: @escaping @Sendable (Redirection) -> RedirectDecision) -> RequestOptions {
    RequestOptions { $0.redirectHandler = .use(RedirectHandler { decide($0) }) }
  }

  @Test("see each redirect: from where, to where, with which status, the how many-th, and what would be sent")
  func sees() async throws {
    let log = Lock<[Redirection]>([])
    let options = options { redirection in
      log.withLock { $0.append(redirection) }
      return .follow
    }

    let resource = try await fixture.manager.load(fixture.url, options: options)

    let seen = log.withLock { $0 }
    #expect(resource.text == "third" && resource.redirects == [fixture.url, second])
    #expect(seen.map(\.from) == [fixture.url, second] && seen.map(\.to) == [second, third])
    #expect(seen.map(\.response.status.code) == [302, 307] && seen.map(\.number) == [1, 2])
    #expect(seen.map(\.request.path) == ["/second", "/third"])
  }

  @Test("may send another request instead, to another place and with other fields")
  func rewrites() async throws {
    let other = try #require(URL(string: "https://other.example/x"))
    fixture.network.answer(other, .ok("other"))
    let request = try HTTPRequest(resource: other, headerFields: [.authorization: "Bearer for other"])

    let resource = try await fixture.manager.load(fixture.url, options: options { _ in .rewrite(request) })

    #expect(resource.text == "other" && resource.url == other && resource.redirects == [fixture.url])
    #expect(fixture.network.requests(for: other).first?.headerFields[.authorization] == "Bearer for other")
  }

  @Test("may stop: the redirect is an answer like any other", arguments: [true, false])
  func stops(isAccepted: Bool) async throws {
    var options = options { _ in .stop }
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

  @Test("may refuse, with a reason")
  func refuses() async throws {
    let error = try await fixture.failure(fixture.url, options { $0.number == 2 ? .refuse("far enough") : .follow })

    #expect(error.code == .redirectRefused && error.reason.contains("far enough"))
    #expect(error.url == fixture.url.absoluteString && error.status == 307)
    #expect(fixture.network.requests.count == 2)
  }

  @Test("also decide about redirects that come from the cache")
  func cached() async throws {
    let moved = try fixture.url("/moved")
    fixture.network.answer(
      moved, .response(.movedPermanently, fields: [.location: "/third", .cacheControl: "max-age=60"]))
    _ = try await fixture.manager.load(moved)

    let error = try await fixture.failure(moved, options { _ in .refuse("no") })

    #expect(error.code == .redirectRefused)
    #expect(fixture.network.requests(for: moved).count == 1)
  }

  @Test("can't lead out of HTTP, nor to plain HTTP, nor beyond the limit")
  func bounds() async throws {
    let file = try HTTPRequest(resource: #require(URL(string: "file:///etc/passwd")))
    let plain = try HTTPRequest(resource: #require(URL(string: "http://example.com/x")))
    let circle = try HTTPRequest(resource: fixture.url)
    fixture.network.serve(fixture.url) { _ in .redirect(to: "/second") }

    #expect(try await fixture.failure(fixture.url, options { _ in .rewrite(file) }).code == .redirectRefused)
    #expect(try await fixture.failure(fixture.url, options { _ in .rewrite(plain) }).code == .redirectRefused)
    #expect(try await fixture.failure(fixture.url, options { _ in .rewrite(circle) }).code == .tooManyRedirects)
  }

  @Test("a redirect from https to http is followed only where that is allowed, and may be mended by a handler")
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
      options: options { redirection in
        var request = redirection.request
        request.scheme = "https"
        return .rewrite(request)
      })

    #expect(refusal.code == .redirectRefused)
    #expect(allowed.text == "plain" && allowed.url == plain)
    #expect(better.text == "mended" && better.url == mended)
  }

  @Test("loads with handlers of their own share nothing; those with one handler share")
  func sharing() async throws {
    let gate = Gate()
    let url = try fixture.url("/shared")
    fixture.network.serve(url) { _ in .ok("bytes").held(by: gate) }
    let handler = RedirectHandler { _ in .follow }
    let shared = RequestOptions { $0.redirectHandler = .use(handler) }

    async let one = fixture.manager.load(url, options: shared)
    async let two = fixture.manager.load(url, options: shared)
    async let three = fixture.manager.load(url, options: options { _ in .follow })
    await gate.arrived(2)
    try await Turns.until { fixture.observer.joins >= 1 }
    gate.open()

    #expect(try await [one.text, two.text, three.text] == ["bytes", "bytes", "bytes"])
    #expect(fixture.network.requests(for: url).count == 2)
  }
}
