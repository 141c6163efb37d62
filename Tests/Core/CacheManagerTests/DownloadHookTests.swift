import CacheCore
import CacheManager
import CacheTesting
import Foundation
import HTTPTypes
import Testing

/// The object of an app that hooks belong to.
private final class Owner: Sendable {
  private let list = Lock<[String]>([])

  var calls: [String] { list.withLock { $0 } }

  func note(_ call: String) { list.withLock { $0.append(call) } }
}

/// A cipher that needs the whole body: it reverses the bytes and leaves the first one out.
private func decrypted(_ data: Data) -> Data { Data(data.dropFirst().reversed()) }

private let plaintext = Data("chair".utf8)
private let ciphertext = Data("?riahc".utf8)

@Suite("Hooks that get the whole body", .timeLimit(.minutes(30)))
struct BodyHookTests {
  private let url = URL(string: "https://example.com/a")

  private func download(
    _ response: ScriptedResponse, method: HTTPRequest.Method = .get, fields: HTTPFields = [:], hooks: DownloaderHooks
  ) async throws -> (response: DownloadResponse, sent: HTTPRequest) {
    let url = try #require(url)
    let network = ScriptedDownloader()
    network.respond(to: url, with: response)
    let request = DownloadRequest(head: try HTTPRequest(resource: url, method: method, headerFields: fields))
    let received = try await network.hooked(by: hooks).download(request)
    return (received, try #require(network.requests.first))
  }

  @Test("the returned body replaces the whole one, and the head describes it")
  func replaced() async throws {
    let digests: HTTPFields = ["Content-Digest", "Repr-Digest", "Content-MD5", "Digest"].reduce(into: [:]) {
      $0.append(HTTPFields.field($1, "x")[0])
    }
    let calls = Lock<[String]>([])
    let hooks = DownloaderHooks {
      $0.onRequestSent = Delegate { _ in calls.withLock { $0.append("sent") } }
      $0.onValidStatusCode = Delegate { _ in
        calls.withLock { $0.append("status") }
        return true
      }
      $0.onResponseReceived = AsyncDelegate { _ in
        calls.withLock { $0.append("response") }
        return .proceed
      }
      $0.onDataReceived = AsyncDelegate { exchange in
        calls.withLock { $0.append("data \(exchange.data.count)") }
        return exchange.data
      }
      $0.onBodyReceived = AsyncDelegate { exchange in
        calls.withLock { $0.append("body \(exchange.data.count)") }
        return decrypted(exchange.data)
      }
      $0.onDownloadingFinished = Delegate { exchange in
        let length = exchange.response?.headerFields[.contentLength] ?? "-"
        calls.withLock { $0.append("finished \(length) \(exchange.error == nil)") }
      }
    }

    let (response, _) = try await download(
      .ok(ciphertext, etag: "\"a\"", fields: digests + [.contentLength: "6", .acceptRanges: "bytes"]).chunked(by: 4),
      hooks: hooks)

    #expect(response.body.length == 5)
    #expect(response.head.headerFields == [.eTag: "\"a\"", .contentLength: "5", .acceptRanges: "none"])
    #expect(try await response.body.collect() == plaintext)
    #expect(
      calls.withLock { $0 } == ["sent", "status", "response", "data 4", "data 2", "body 6", "finished 5 true"])
  }

  @Test("an empty body is whole too")
  func empty() async throws {
    let hooks = DownloaderHooks { $0.onBodyReceived = AsyncDelegate { $0.data + plaintext } }
    #expect(try await download(.ok(Data()), hooks: hooks).response.body.collect() == plaintext)
  }

  @Test("the error of a hook ends the download, and the last hook gets it")
  func refused() async throws {
    let ends = Lock<[CacheError.Code?]>([])
    let hooks = DownloaderHooks {
      $0.onBodyReceived = AsyncDelegate { _ in throw CacheError(.damagedContentCoding, reason: "bad padding") }
      $0.onDownloadingFinished = Delegate { exchange in ends.withLock { $0.append(exchange.error?.code) } }
    }
    let error = await #expect(throws: CacheError.self) { try await download(.ok(ciphertext), hooks: hooks) }
    #expect(error?.code == .damagedContentCoding && error?.reason == "bad padding")
    #expect(ends.withLock { $0 } == [.damagedContentCoding])
  }

  @Test("a negative limit is refused before a request is sent")
  func negativeLimit() async throws {
    let network = ScriptedDownloader()
    let hooks = DownloaderHooks {
      $0.bodyLimit = -1
      $0.onBodyReceived = AsyncDelegate { $0.data }
    }
    let request = DownloadRequest(head: try HTTPRequest(resource: try #require(url)))
    await #expect { try await network.hooked(by: hooks).download(request) } throws: {
      ($0 as? CacheError)?.code == .invalidConfiguration
    }
    #expect(network.requests.isEmpty)
  }

  @Test("a body above the limit ends the download, whether its length is stated or not", arguments: [true, false])
  func limit(isStated: Bool) async throws {
    let ends = Lock<[CacheError.Code?]>([])
    let hooks = DownloaderHooks {
      $0.bodyLimit = 5
      $0.onBodyReceived = AsyncDelegate { $0.data }
      $0.onDownloadingFinished = Delegate { exchange in ends.withLock { $0.append(exchange.error?.code) } }
    }
    let large = ScriptedResponse.ok(ciphertext)
    await #expect { try await download(isStated ? large : large.withoutLength(), hooks: hooks) } throws: {
      ($0 as? CacheError)?.code == .bodyTooLarge
    }
    #expect(ends.withLock { $0 } == [.bodyTooLarge])
    #expect(try await download(.ok(plaintext), hooks: hooks).response.body.collect() == plaintext)
  }

  @Test(
    "a response without a whole body is passed on without the call",
    arguments: [
      (HTTPRequest.Method.head, 200, true), (.get, 204, true), (.get, 205, true), (.get, 304, true), (.get, 404, false),
      (.get, 302, false), (.head, 404, false),
    ])
  func withoutCall(_ method: HTTPRequest.Method, _ status: Int, losesLength: Bool) async throws {
    let isCalled = Lock(false)
    let hooks = DownloaderHooks {
      $0.onBodyReceived = AsyncDelegate { exchange in
        isCalled.withLock { $0 = true }
        return exchange.data
      }
    }
    let body = status == 404 && method == .get ? ciphertext : Data()
    let scripted = ScriptedResponse.response(.init(code: status), fields: [.contentLength: "6"], body: body)
    let response = try await download(scripted, method: method, hooks: hooks).response
    #expect(try await response.body.collect() == body)
    #expect(!isCalled.withLock { $0 })
    #expect((response.head.headerFields[.contentLength] == nil) == losesLength)
    #expect((response.head.headerFields[.acceptRanges] == "none") == losesLength)
  }

  @Test("no part of a body is requested, and one that arrives nevertheless is refused")
  func parts() async throws {
    let hooks = DownloaderHooks { $0.onBodyReceived = AsyncDelegate { decrypted($0.data) } }
    let fields: HTTPFields = [.range: "bytes=2-", .ifRange: "\"a\"", .accept: "*/*"]
    let (response, sent) = try await download(.ok(ciphertext), fields: fields, hooks: hooks)
    #expect(sent.headerFields[.range] == nil && sent.headerFields[.ifRange] == nil && sent.headerFields[.accept] == "*/*")
    #expect(try await response.body.collect() == plaintext)

    let part = ScriptedResponse.response(.partialContent, fields: [.contentRange: "bytes 2-5/6"], body: ciphertext.dropFirst(2))
    await #expect { try await download(part, fields: fields, hooks: hooks) } throws: {
      ($0 as? CacheError)?.code == .malformedResponse
    }
    // Other hooks get the part that was requested.
    let others = DownloaderHooks { $0.onDataReceived = AsyncDelegate { $0.data } }
    #expect(try await download(part, fields: fields, hooks: others).sent.headerFields[.range] == "bytes=2-")
  }

  @Test("a manager stores the returned body, and a 304 confirms it")
  func stored() async throws {
    let hooks = DownloaderHooks { $0.onBodyReceived = AsyncDelegate { decrypted($0.data) } }
    let fixture = try ManagerFixture { $0.downloader = $0.downloader.map { $0.hooked(by: hooks) } }
    fixture.network.respond(
      to: fixture.url, with: .ok(ciphertext, etag: "\"a\"", cacheControl: "max-age=60"), .notModified(etag: "\"a\""))
    #expect(try await fixture.manager.load(fixture.url).text == "chair")
    fixture.restart()
    #expect(try await fixture.manager.load(fixture.url).text == "chair")
    let confirmed = try await fixture.manager.load(fixture.url, options: .policy(.revalidate()))
    #expect(confirmed.text == "chair" && confirmed.source == .revalidated)
    #expect(confirmed.response.headerFields[.contentLength] == "5")
  }

  @Test("a range request of a client gets its bytes from the whole body")
  func range() async throws {
    let hooks = DownloaderHooks { $0.onBodyReceived = AsyncDelegate { decrypted($0.data) } }
    let fixture = try ManagerFixture { $0.downloader = $0.downloader.map { $0.hooked(by: hooks) } }
    fixture.network.serve(fixture.url) { request in
      // A server that supports ranges. Its part cannot be decrypted.
      guard request.headerFields[.range] == nil else {
        return .response(.partialContent, fields: [.contentRange: "bytes 1-2/6"], body: ciphertext[1...2])
      }
      return .ok(ciphertext, etag: "\"a\"", cacheControl: "max-age=60")
    }
    let request = try HTTPRequest(resource: fixture.url, headerFields: [.range: "bytes=1-2"])
    for _ in 0..<2 {
      let response = try await fixture.manager.respond(to: request)
      let body = try await response.body.collect()
      #expect(body == (response.head.status == .partialContent ? plaintext[1...2] : plaintext))
    }
  }

  @Test("a cancellation ends a hook that suspends, and the last hook gets it")
  func cancelled() async throws {
    let gate = Gate()
    let ends = Lock<[CacheError.Code?]>([])
    let hooks = DownloaderHooks {
      $0.onBodyReceived = AsyncDelegate { exchange in
        await gate.pass()
        return exchange.data
      }
      $0.onDownloadingFinished = Delegate { exchange in ends.withLock { $0.append(exchange.error?.code) } }
    }
    let task = Task { try await download(.ok(ciphertext), hooks: hooks).response }
    await gate.arrived()
    task.cancel()
    await #expect { try await task.value } throws: { ($0 as? CacheError)?.isCancellation == true }
    #expect(ends.withLock { $0 } == [.cancelled])
  }
}

@Suite("Hooks and their targets", .timeLimit(.minutes(30)))
struct HookTargetTests {
  fileprivate typealias Setting = @Sendable (inout DownloaderHooks, Owner) -> Void

  fileprivate static let settings: [(String, Setting)] = [
    ("sent", { $0.onRequestSent.delegate(on: $1) { (owner, _) in owner.note("sent") } }),
    (
      "status",
      {
        $0.onValidStatusCode.delegate(on: $1) { (owner, _) in
          owner.note("status")
          return true
        }
      }
    ),
    (
      "response",
      {
        $0.onResponseReceived.delegate(on: $1) { (owner, _) in
          owner.note("response")
          return .proceed
        }
      }
    ),
    (
      "data",
      {
        $0.onDataReceived.delegate(on: $1) { (owner, exchange) in
          owner.note("data")
          return exchange.data
        }
      }
    ),
    (
      "body",
      {
        $0.onBodyReceived.delegate(on: $1) { (owner, exchange) in
          owner.note("body")
          return exchange.data
        }
      }
    ),
    ("finished", { $0.onDownloadingFinished.delegate(on: $1) { (owner, _) in owner.note("finished") } }),
  ]

  @Test("a hook does not retain its target, and a hook that replaces bytes needs it", arguments: settings.indices)
  func weakly(_ index: Int) async throws {
    let (name, set) = Self.settings[index]
    var hooks = DownloaderHooks()
    weak var observed: Owner?
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: .ok("bytes"), .ok("bytes"))
    let options: RequestOptions
    do {
      let owner = Owner()
      observed = owner
      set(&hooks, owner)
      options = RequestOptions { $0.hooks = hooks }
      #expect(try await fixture.manager.load(fixture.url, options: options).text == "bytes")
      #expect(owner.calls == [name])
    }

    #expect(observed == nil)
    if name == "data" || name == "body" {
      #expect(try await fixture.failure(fixture.url, options).code == .refused)
    } else {
      #expect(try await fixture.manager.load(fixture.url, options: options).text == "bytes")
    }
  }

  @Test(
    "after the release of a target whose bytes must be replaced, running and later requests fail, and nothing is stored",
    arguments: [true, false], [true, false])
  func released(isWhole: Bool, isRedirect: Bool) async throws {
    let fixture = try ManagerFixture()
    let (gate, second) = (Gate(), try fixture.url("/second"))
    let last = ScriptedResponse.ok(ciphertext, cacheControl: "max-age=60")
    let first = isRedirect ? ScriptedResponse.redirect(to: second.absoluteString) : last
    fixture.network.serve(fixture.url) { _ in first }
    fixture.network.serve(second) { _ in last }
    fixture.network.respond(to: fixture.url, with: first.held(by: gate))
    var owner: Owner? = Owner()
    let hooks = DownloaderHooks { hooks in
      guard let owner else { return }
      if isWhole {
        hooks.onBodyReceived.delegate(on: owner) { decrypted($1.data) }
      } else {
        hooks.onDataReceived.delegate(on: owner) { $1.data }
      }
    }
    let options = RequestOptions { $0.hooks = hooks }
    let task = Task { try await fixture.failure(fixture.url, options) }
    await gate.arrived()
    owner = nil
    gate.open()
    #expect(try await task.value.code == .refused)
    #expect(try await fixture.failure(fixture.url, options).code == .refused)
    #expect(fixture.network.requests.count == (isRedirect ? 4 : 2))
    #expect(try await fixture.failure(isRedirect ? second : fixture.url, .policy(.cacheOnly)).code == .notCached)
  }
}

@Suite("Hooks of one request", .timeLimit(.minutes(30)))
struct RequestHookTests {
  @Test("loads with hooks of their own share no request, and empty hooks do not count")
  func coalescing() async throws {
    let fixture = try ManagerFixture()
    let gate = Gate()
    fixture.network.serve(fixture.url) { _ in .ok(ciphertext).held(by: gate) }
    let hooks = DownloaderHooks { $0.onBodyReceived = AsyncDelegate { decrypted($0.data) } }
    let all: [DownloaderHooks?] = [nil, nil, DownloaderHooks(), hooks, hooks]
    let tasks = all.map { hooks in
      Task { try await fixture.manager.load(fixture.url, options: RequestOptions { $0.hooks = hooks }).text }
    }
    await gate.arrived(3)
    try await Polling.until { fixture.observer.joins == 2 }
    gate.open()
    var texts: [String] = []
    for task in tasks { texts.append(try await task.value) }
    #expect(texts == ["?riahc", "?riahc", "?riahc", "chair", "chair"])
    #expect(fixture.network.requests.count == 3)
  }

  @Test("each hop, and each alternative, calls the hooks", arguments: [false, true])
  func hops(isAlternative: Bool) async throws {
    let fixture = try ManagerFixture()
    let (owner, second) = (Owner(), try fixture.url("/second"))
    fixture.network.respond(
      to: fixture.url, with: isAlternative ? .failure(.connectionLost) : .redirect(to: second.absoluteString))
    fixture.network.respond(to: second, with: .ok("bytes"))
    let options = RequestOptions {
      $0.hooks = DownloaderHooks {
        $0.onRequestSent.delegate(on: owner) { (owner, exchange) in owner.note(exchange.request.path ?? "-") }
      }
      if isAlternative { $0.alternatives = [.mirror(second)] }
    }
    #expect(try await fixture.manager.load(fixture.url, options: options).text == "bytes")
    #expect(owner.calls == ["/image.png", "/second"])
  }

  @Test("a hit calls no hook, and a refusal ends the load in every form", arguments: LoadForm.all)
  func forms(_ form: LoadForm) async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: .ok("bytes", cacheControl: "max-age=60"))
    let options = RequestOptions {
      $0.hooks = DownloaderHooks { $0.onResponseReceived = AsyncDelegate { _ in .refuse("not today") } }
    }
    let error = await #expect(throws: CacheError.self) { try await form.load(fixture.manager, fixture.url, options) }
    #expect(error?.code == .refused && error?.reason == "not today")

    fixture.network.respond(to: fixture.url, with: .ok("bytes", cacheControl: "max-age=60"))
    _ = try await fixture.manager.load(fixture.url)
    _ = try await form.load(fixture.manager, fixture.url, options)
  }

  @Test("bytes that the caller stores pass through no hook", arguments: [CacheLayers.memory, .all])
  func ownBytes(_ layers: CacheLayers) async throws {
    let fixture = try ManagerFixture()
    let options = RequestOptions {
      $0.writes = layers
      $0.hooks = DownloaderHooks { $0.onBodyReceived = AsyncDelegate { decrypted($0.data) } }
    }
    try await fixture.manager.store(plaintext, for: fixture.url, options: options)
    #expect(try await fixture.manager.load(fixture.url, options: options).text == "chair")
  }

  @Test("an interceptor's change is seen by the hooks, and other schemes call them too")
  func beside() async throws {
    let data = ScriptedDownloader()
    let fixture = try ManagerFixture {
      $0.schemeHandlers = ["app": data]
      $0.interceptor = RequestInterceptor(willSend: { $0.head.headerFields[.accept] = "image/*" })
    }
    let (owner, local) = (Owner(), try #require(URL(string: "app://icons/chair")))
    fixture.network.respond(to: fixture.url, with: .ok("bytes"))
    data.respond(to: local, with: .ok("icon"))
    let options = RequestOptions {
      $0.hooks = DownloaderHooks {
        $0.onRequestSent.delegate(on: owner) { (owner, exchange) in
          owner.note(exchange.request.headerFields[.accept] ?? "-")
        }
      }
    }
    #expect(try await fixture.manager.load(fixture.url, options: options).text == "bytes")
    #expect(try await fixture.manager.load(local, options: options).text == "icon")
    #expect(owner.calls == ["image/*", "-"])
  }
}
