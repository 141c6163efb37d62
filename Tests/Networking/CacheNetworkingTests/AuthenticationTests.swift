#if Origin
import CacheCore
import CacheNetworking
import Foundation
import HTTPTypes
import LoopbackOrigin
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite("Authentication", .timeLimit(.minutes(30))) struct AuthenticationTests {
  private let credential = OriginCredential(user: "ada", password: "lovelace")

  private func guarded(_ fixture: Fixture) {
    fixture.origin.setRoute("/a", Route(pattern(5000), credential: credential))
  }

  @Test("a Basic challenge without a credential results in the 401 with its body")
  func withoutCredential() async throws {
    try await Fixture.run { fixture async throws in
      fixture.origin.setRoute(
        "/a",
        Route(
          Data("credential required".utf8), fields: [.wwwAuthenticate: "Basic realm=\"x\""], status: .unauthorized))

      let response = try await fixture.get("/a")

      #expect(response.head.status == .unauthorized)
      #expect(response.head.headerFields[.wwwAuthenticate] == "Basic realm=\"x\"")
      #expect(try await response.body.collect() == Data("credential required".utf8))
      #expect(fixture.origin.counters(for: "/a").requests == 1)
    }
  }

  @Test("any 401 ends the download", arguments: ["Digest realm=\"x\", nonce=\"abc\"", "Bearer realm=\"x\"", "Negotiate", "odd"])
  func otherSchemes(challenge: String) async throws {
    let asked = Recorder<String>()
    let handler = AuthenticationChallenge.Handler { challenge in
      asked.record(challenge.method)
      return nil
    }
    try await Fixture.run(challengeHandler: handler) { fixture async throws in
      fixture.origin.setRoute("/a", Route(pattern(10), fields: [.wwwAuthenticate: challenge], status: .unauthorized))

      let response = try await fixture.get("/a")

      #expect(response.head.status == .unauthorized)
      #expect(try await response.body.collect() == pattern(10))
    }
  }

  @Test("a credential that the caller sets in the request is sent")
  func ownField() async throws {
    try await Fixture.run { fixture async throws in
      guarded(fixture)
      let value = "Basic " + Data("ada:lovelace".utf8).base64EncodedString()

      let response = try await fixture.get("/a", fields: [.authorization: value])

      #expect(response.head.status == .ok)
      #expect(try await response.body.collect() == pattern(5000))
      #expect(fixture.origin.counters(for: "/a").requests == 1)
    }
  }

  @Test("a credential from the handler is sent, and the first 401 is not returned")
  func fromHook() async throws {
    let asked = Recorder<String?>()
    let handler = AuthenticationChallenge.Handler { challenge in
      asked.record(challenge.realm)
      return URLCredential(user: "ada", password: "lovelace", persistence: .none)
    }
    try await Fixture.run(challengeHandler: handler) { fixture async throws in
      guarded(fixture)

      let response = try await fixture.get("/a")

      #expect(response.head.status == .ok)
      #expect(try await response.body.collect() == pattern(5000))
      #expect(asked.values.count == 1)
      #expect(fixture.origin.counters(for: "/a").requests == 2)
    }
  }

  @Test("a response to a credential of the handler must not be stored, but other responses may be")
  func notForTheCache() async throws {
    let asked = Recorder<Void>()
    let fields: HTTPFields = [.cacheControl: "max-age=60, must-understand", .eTag: "\"a\""]
    let handler = AuthenticationChallenge.Handler { _ in
      asked.record(())
      return URLCredential(user: "ada", password: "lovelace", persistence: .none)
    }
    try await Fixture.run(challengeHandler: handler) { fixture async throws in
      fixture.origin.setRoute("/a", Route(pattern(50), fields: fields, credential: credential))
      fixture.origin.setRoute("/open", Route(pattern(50), fields: fields))
      let own: HTTPFields = [.authorization: "Basic " + Data("ada:lovelace".utf8).base64EncodedString()]

      let opened = try await fixture.get("/a")
      let free = try await fixture.get("/open")
      let ownCredential = try await fixture.get("/a", fields: own)

      #expect(opened.head.status == .ok)
      #expect(opened.head.headerFields[.cacheControl] == "no-store")
      #expect(try await opened.body.collect() == pattern(50))
      #expect(asked.values.count == 1)
      #expect(free.head.headerFields[.cacheControl] == "max-age=60, must-understand")
      #expect(ownCredential.head.headerFields[.cacheControl] == "max-age=60, must-understand")
    }
  }

  @Test(
    "with a credential in the additional headers, every download fails with the field's name, and no request is sent",
    arguments: [HTTPField.Name.authorization, .cookie, .proxyAuthorization])
  func addedCredential(name: HTTPField.Name) async throws {
    var configuration = SessionDownloader.Configuration()
    configuration.additionalHeaders = [.accept: "*/*", name: "secret"]
    try await Fixture.run(configuration) { fixture async throws in
      fixture.origin.setRoute("/a", Route(pattern(50)))

      let error = try await fixture.failure(of: fixture.request("/a", fields: [name: "own"]))

      #expect(error?.code == .invalidConfiguration)
      #expect(error?.reason.contains(name.canonicalName) == true || error?.reason.contains(name.rawName) == true)
      #expect(error?.reason.contains("secret") == false)
      #expect(fixture.origin.requests.isEmpty)
    }
  }

  @Test("a credential that is refused repeatedly results in a 401")
  func wrongCredential() async throws {
    let asked = Recorder<Int>()
    let handler = AuthenticationChallenge.Handler { challenge in
      asked.record(challenge.previousFailures)
      return URLCredential(user: "ada", password: "byron", persistence: .none)
    }
    try await Fixture.run(challengeHandler: handler) { fixture async throws in
      guarded(fixture)

      let response = try await fixture.get("/a")
      _ = try await response.body.collect()

      #expect(response.head.status == .unauthorized)
      #expect(asked.values == [0, 1, 2])
    }
  }

  @Test("a handler without a credential makes the 401 the response, with its body")
  func hookDeclines() async throws {
    let asked = Recorder<String>()
    let handler = AuthenticationChallenge.Handler { challenge in
      asked.record(challenge.host)
      return nil
    }
    try await Fixture.run(challengeHandler: handler) { fixture async throws in
      fixture.origin.setRoute(
        "/a", Route(pattern(2000), fields: [.wwwAuthenticate: "Basic realm=\"x\""], status: .unauthorized))

      let response = try await fixture.get("/a")

      #expect(response.head.status == .unauthorized)
      #expect(try await response.body.collect() == pattern(2000))
      #expect(asked.values == ["127.0.0.1"])
    }
  }

  @Test("a cancellation ends the download at once while the handler runs")
  func cancelledMeanwhile() async throws {
    let asked = Recorder<CheckedContinuation<Void, Never>>()
    let handler = AuthenticationChallenge.Handler { challenge in
      await withCheckedContinuation { asked.record($0) }
      return URLCredential(user: "ada", password: "lovelace", persistence: .none)
    }
    try await Fixture.run(challengeHandler: handler) { fixture async throws in
      guarded(fixture)
      let request = try fixture.request("/a")
      let task = Task { await fixture.failure(of: request) }
      let thinking = await asked.wait(for: 1)

      task.cancel()
      #expect(await task.value?.isCancellation == true)
      for continuation in thinking { continuation.resume() }
    }
  }

  @Test("the error of a handler ends the download")
  func refused() async throws {
    let handler = AuthenticationChallenge.Handler { _ in throw CacheError(.refused, reason: "the keychain is locked") }
    try await Fixture.run(challengeHandler: handler) { fixture async throws in
      guarded(fixture)
      let error = await fixture.failure(of: try fixture.request("/a"))
      #expect(error?.code == .refused && error?.reason == "the keychain is locked")
    }
  }

  /// The owner of credentials in an app.
  private final class Keychain: Sendable {
    func credential(for host: String) -> URLCredential? {
      URLCredential(user: "ada", password: "lovelace", persistence: .none)
    }
  }

  @Test("a handler that is set later is called in a replaced session too, and does not retain its target")
  func setLater() async throws {
    try await Fixture.run { fixture async throws in
      guarded(fixture)
      weak var observed: Keychain?
      do {
        let keychain = Keychain()
        observed = keychain
        fixture.downloader.challengeHandler.delegate(on: keychain) { (keychain, challenge) in
          keychain.credential(for: challenge.host)
        }
        fixture.downloader.replaceSession()
        #expect(try await fixture.get("/a").body.collect() == pattern(5000))
      }
      #expect(observed == nil)
      #expect(!fixture.downloader.challengeHandler.isSet)
      #expect(try await fixture.get("/a").head.status == .unauthorized)
    }
  }
}
#endif
