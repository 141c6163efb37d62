#if Origin
import Etagere
import Foundation
import LoopbackOrigin
import Testing

@Suite("Responses for one user", .timeLimit(.minutes(30)))
struct PrivacyTests {
  private static func request(_ url: URL, _ user: String?) -> ResourceRequest {
    ResourceRequest(url, headerFields: user.map { [.authorization: "Bearer \($0)"] } ?? [:])
  }

  /// Responds with the name of the user, and allows every response to be stored for an hour.
  private static func route(vary: Bool) -> Route {
    Route { request in
      var fields: HTTPFields = [.cacheControl: "max-age=3600"]
      if vary { fields[.vary] = "Authorization" }
      let user = request.fields[.authorization] ?? "anonymous"
      return OriginResponse(Data("for \(user)".utf8), etag: .strong("\(user.count)"), fields: fields)
    }
  }

  @Test(
    "a response for one user is served to that user alone, also after a restart, with and without Vary", arguments: [false, true])
  func users(_ vary: Bool) async throws {
    try await OriginFixture.run { fixture in
      // Given
      let url = fixture.origin.url("/mine")
      fixture.origin.setRoute("/mine", Self.route(vary: vary))
      let users = ["anna-0001", "berta-002", nil]
      let first = try fixture.manager()

      // When each user sends the first request, in turns
      for user in users {
        let response = try await first.load(Self.request(url, user))
        #expect(response.source == .network)
        #expect(response.data == Data("for \(user.map { "Bearer \($0)" } ?? "anonymous")".utf8))
      }
      let asked = fixture.requests("/mine")
      #expect(asked == 3)

      // Then each user finds only own responses, also after a restart, when only the folder is left
      for manager in [first, try fixture.manager()] {
        for user in users {
          let response = try await manager.load(Self.request(url, user))
          #expect(response.data == Data("for \(user.map { "Bearer \($0)" } ?? "anonymous")".utf8))
        }
      }
      let restarted = try fixture.manager()
      let own = try await restarted.load(Self.request(url, "berta-002"))
      #expect(own.source == .disk)
      #expect(await failure { _ = try await restarted.load(Self.policy(.cacheOnly, url, "carla-003")) }?.code == .notCached)
    }
  }

  private static func policy(_ policy: LoadPolicy, _ url: URL, _ user: String) -> ResourceRequest {
    var request = request(url, user)
    request.options.policy = policy
    return request
  }

  @Test("a response with credentials is not served to a request without them, even if it was stored first")
  func unauthorized() async throws {
    try await OriginFixture.run { fixture in
      let url = fixture.origin.url("/mine")
      fixture.origin.setRoute("/mine", Self.route(vary: false))
      let manager = try fixture.manager()
      _ = try await manager.load(Self.request(url, "anna-0001"))
      #expect(try await manager.lookup(url) == .miss)
      #expect(try await manager.load(url).data == Data("for anonymous".utf8))
    }
  }

  @Test("no file on the disk contains a credential or a cookie")
  func noSecretsOnDisk() async throws {
    try await OriginFixture.run { fixture in
      // Given
      let secrets = ["S3CRET-TOKEN", "S3CRET-COOKIE", "S3CRET-USER", "S3CRET-PASSWORD", "S3CRET-PROXY"]
      fixture.origin.setFallback { _ in
        OriginResponse(
          Data("answer".utf8), etag: "v1",
          fields: [.cacheControl: "max-age=3600", .vary: "Authorization, Cookie, Accept-Language"])
      }
      let manager = try fixture.manager()
      let proxy = try #require(HTTPField.Name("Proxy-Authorization"))
      let fields: HTTPFields = [
        .authorization: "Bearer S3CRET-TOKEN", .cookie: "session=S3CRET-COOKIE", proxy: "Basic S3CRET-PROXY",
        .acceptLanguage: "visible-language",
      ]
      let inURL = try #require(URL(string: "http://S3CRET-USER:S3CRET-PASSWORD@127.0.0.1:\(fixture.origin.port)/in-url"))

      // When
      _ = try await manager.load(ResourceRequest(fixture.origin.url("/a"), headerFields: fields))
      _ = try await manager.load(inURL)
      #expect(fixture.origin.requests(for: "/a").first?.fields[.authorization] == "Bearer S3CRET-TOKEN")
      #expect(fixture.origin.requests(for: "/in-url").first?.fields[.authorization]?.hasPrefix("Basic ") == true)

      // Then
      #expect(fixture.folder.entries.count == 2)
      let encoded = [
        Data("S3CRET-USER:S3CRET-PASSWORD".utf8).base64EncodedString(), "Bearer", "session=",
      ]
      var sawOrdinary = false
      for file in fixture.folder.files {
        let bytes = try Data(contentsOf: file)
        for secret in secrets + encoded {
          #expect(bytes.range(of: Data(secret.utf8)) == nil, "\(secret) is in \(file.lastPathComponent)")
          #expect(!file.path(percentEncoded: false).contains(secret))
        }
        sawOrdinary = sawOrdinary || bytes.range(of: Data("visible-language".utf8)) != nil
      }
      // An ordinary field is found, so the search reads the right files.
      #expect(sawOrdinary)
    }
  }

  @Test("credentials are not sent to another host after a redirect", arguments: [301, 302, 303, 307, 308])
  func redirectToAnotherHost(_ status: Int) async throws {
    try await OriginFixture.run { fixture in
      // Given the same origin under another name, which is another host
      let target = "http://localhost:\(fixture.origin.port)/target"
      fixture.origin.setRoute("/start", .redirect(to: target, status: .init(code: status)))
      fixture.origin.setRoute("/target", Route(Data("there".utf8), etag: "v1"))
      let fields: HTTPFields = [.authorization: "Bearer token", .cookie: "a=b", .accept: "text/plain"]

      // When
      let resource = try await fixture.manager().load(ResourceRequest(fixture.origin.url("/start"), headerFields: fields))

      // Then
      #expect(resource.data == Data("there".utf8))
      #expect(resource.url.absoluteString == target)
      #expect(resource.redirects == [fixture.origin.url("/start")])
      let first = try #require(fixture.origin.requests(for: "/start").first)
      let second = try #require(fixture.origin.requests(for: "/target").first)
      #expect(first.fields[.authorization] == "Bearer token")
      #expect(second.fields[.authorization] == nil)
      #expect(second.fields[.cookie] == nil)
      #expect(second.fields[.accept] == "text/plain")
    }
  }

  @Test("credentials are sent to the same host after a redirect")
  func redirectOnOneHost() async throws {
    try await OriginFixture.run { fixture in
      fixture.origin.setRoute("/start", .redirect(to: "/target?x=1"))
      fixture.origin.setRoute("/target", Route(Data("there".utf8), etag: "v1"))
      let request = ResourceRequest(fixture.origin.url("/start"), headerFields: [.authorization: "Bearer token"])
      #expect(try await fixture.manager().load(request).data == Data("there".utf8))
      let second = try #require(fixture.origin.requests(for: "/target").first)
      #expect(second.fields[.authorization] == "Bearer token")
      #expect(second.query == "x=1")
    }
  }
}
#endif
