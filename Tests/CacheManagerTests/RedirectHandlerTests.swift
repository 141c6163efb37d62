import CacheCore
import CacheManager
import CacheTesting
import Foundation
import HTTPTypes
import Testing

@Suite("Redirect handlers")
struct RedirectHandlerTests {
  let house: House
  let second: URL
  let third: URL

  init() throws {
    house = try House()
    (second, third) = (try house.url("/second"), try house.url("/third"))
    house.network.answer(house.url, .redirect(to: "/second"))
    house.network.answer(second, .redirect(to: "/third", status: .temporaryRedirect))
    house.network.answer(third, .ok("third"))
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

    let resource = try await house.manager.load(house.url, options: options)

    let seen = log.withLock { $0 }
    #expect(resource.text == "third" && resource.redirects == [house.url, second])
    #expect(seen.map(\.from) == [house.url, second] && seen.map(\.to) == [second, third])
    #expect(seen.map(\.response.status.code) == [302, 307] && seen.map(\.number) == [1, 2])
    #expect(seen.map(\.request.path) == ["/second", "/third"])
  }

  @Test("may send another request instead, to another place and with other fields")
  func rewrites() async throws {
    let other = try #require(URL(string: "https://other.example/x"))
    house.network.answer(other, .ok("other"))
    let request = try HTTPRequest(resource: other, headerFields: [.authorization: "Bearer for other"])

    let resource = try await house.manager.load(house.url, options: options { _ in .rewrite(request) })

    #expect(resource.text == "other" && resource.url == other && resource.redirects == [house.url])
    #expect(house.network.requests(for: other).first?.headerFields[.authorization] == "Bearer for other")
  }

  @Test("may stop: the redirect is an answer like any other", arguments: [true, false])
  func stops(isAccepted: Bool) async throws {
    var options = options { _ in .stop }
    if isAccepted { options.acceptedStatuses = AcceptedStatuses(200..<400) }

    if isAccepted {
      let resource = try await house.manager.load(house.url, options: options)
      #expect(resource.response.status == .found && resource.url == house.url && resource.redirects.isEmpty)
    } else {
      let error = try await house.failure(house.url, options)
      #expect(error.code == .unacceptableStatus && error.status == 302)
    }
    #expect(house.network.requests.count == 1)
  }

  @Test("may refuse, with a reason")
  func refuses() async throws {
    let error = try await house.failure(house.url, options { $0.number == 2 ? .refuse("far enough") : .follow })

    #expect(error.code == .redirectRefused && error.reason.contains("far enough"))
    #expect(error.url == house.url.absoluteString && error.status == 307)
    #expect(house.network.requests.count == 2)
  }

  @Test("also decide about redirects that come from the cache")
  func cached() async throws {
    let moved = try house.url("/moved")
    house.network.answer(
      moved, .response(.movedPermanently, fields: [.location: "/third", .cacheControl: "max-age=60"]))
    _ = try await house.manager.load(moved)

    let error = try await house.failure(moved, options { _ in .refuse("no") })

    #expect(error.code == .redirectRefused)
    #expect(house.network.requests(for: moved).count == 1)
  }

  @Test("can't lead out of HTTP, nor to plain HTTP, nor beyond the limit")
  func bounds() async throws {
    let file = try HTTPRequest(resource: #require(URL(string: "file:///etc/passwd")))
    let plain = try HTTPRequest(resource: #require(URL(string: "http://example.com/x")))
    let circle = try HTTPRequest(resource: house.url)
    house.network.serve(house.url) { _ in .redirect(to: "/second") }

    #expect(try await house.failure(house.url, options { _ in .rewrite(file) }).code == .redirectRefused)
    #expect(try await house.failure(house.url, options { _ in .rewrite(plain) }).code == .redirectRefused)
    #expect(try await house.failure(house.url, options { _ in .rewrite(circle) }).code == .tooManyRedirects)
  }

  @Test("a redirect from https to http is followed only where that is allowed, and may be mended by a handler")
  func insecure() async throws {
    let secure = try house.url("/secure")
    let (plain, mended) = (try #require(URL(string: "http://example.com/plain")), try house.url("/plain"))
    house.network.serve(secure) { _ in .redirect(to: "http://example.com/plain") }
    house.network.serve(plain) { _ in .ok("plain") }
    house.network.serve(mended) { _ in .ok("mended") }

    let refusal = try await house.failure(secure)
    let allowed = try await house.manager.load(secure, options: RequestOptions { $0.allowsInsecureRedirects = true })
    let better = try await house.manager.load(
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
    let url = try house.url("/shared")
    house.network.serve(url) { _ in .ok("bytes").held(by: gate) }
    let handler = RedirectHandler { _ in .follow }
    let shared = RequestOptions { $0.redirectHandler = .use(handler) }

    async let one = house.manager.load(url, options: shared)
    async let two = house.manager.load(url, options: shared)
    async let three = house.manager.load(url, options: options { _ in .follow })
    await gate.arrived(2)
    try await Turns.until { house.observer.joins >= 1 }
    gate.open()

    #expect(try await [one.text, two.text, three.text] == ["bytes", "bytes", "bytes"])
    #expect(house.network.requests(for: url).count == 2)
  }
}
