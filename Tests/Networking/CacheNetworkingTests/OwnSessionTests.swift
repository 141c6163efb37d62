#if Origin
import CacheNetworking
import CacheTesting
import Foundation
import HTTPTypes
import LoopbackOrigin
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A protocol that responds at once with five bytes. The query of the URL is the length that it announces.
///
/// Foundation on Linux traps on an infinite time-out of a request over the network, and libcurl never delivers too many bytes.
private final class InstantProtocol: URLProtocol {
  override static func canInit(with request: URLRequest) -> Bool { true }
  override static func canonicalRequest(for request: URLRequest) -> URLRequest { request }

  override func startLoading() {
    let fields = request.url?.query().map { ["Content-Length": $0] }
    guard let url = request.url,
      let response = HTTPURLResponse(url: url, statusCode: 200, httpVersion: "HTTP/1.1", headerFields: fields ?? [:])
    else { return }
    client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
    client?.urlProtocol(self, didLoad: Data("bytes".utf8))
    client?.urlProtocolDidFinishLoading(self)
  }

  override func stopLoading() {}
}

@Suite("A session of one's own", .timeLimit(.minutes(30))) struct OwnSessionTests {
  private func withSession(
    _ delegate: SessionDelegate = SessionDelegate(), _ body: (OriginServer, URLSession) async throws -> Void
  ) async throws {
    let origin = try await OriginServer.start()
    let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
    let result: Result<Void, any Error>
    do { result = .success(try await body(origin, session)) } catch { result = .failure(error) }
    session.finishTasksAndInvalidate()
    await origin.stop()
    try result.get()
  }

  @Test("a request gets the head, the body and the metrics of its response")
  func response() async throws {
    let delegate = SessionDelegate()
    try await withSession(delegate) { origin, session in
      origin.setRoute("/a", Route(pattern(300_000), etag: "v1"))

      let transfer = try delegate.start(URLRequest(url: origin.url("/a")), in: session)
      let response = try await transfer.response()

      #expect(response.head.status == .ok && response.head.headerFields[.eTag] == "\"v1\"")
      #expect(response.body.length == 300_000)
      #expect(try await response.body.collect() == pattern(300_000))
      #expect(transfer.hasEnded && transfer.url == origin.url("/a"))
      #expect(transfer.metrics.bytesDecoded == 300_000 && response.metrics().bytesDecoded == 300_000)
      #expect(delegate.transfers.isEmpty && delegate.transfer(of: transfer.task) == nil)
      await #expect { try await transfer.response() } throws: { ($0 as? CacheError)?.code == .misuse }
    }
  }

  @Test("an upload task is started once, and a redirect is the response")
  func tasks() async throws {
    let delegate = SessionDelegate()
    try await withSession(delegate) { origin, session in
      origin.setRoute("/a", .redirect(to: "/b"))
      var request = URLRequest(url: origin.url("/a"))
      request.httpMethod = "PUT"
      let task = session.uploadTask(with: request, from: pattern(1000))

      let transfer = try delegate.start(task, in: session)
      #expect(throws: CacheError.self) { try delegate.start(task, in: session) }
      let response = try await transfer.response()

      #expect(response.head.status == .found && response.head.headerFields[.location] == "/b")
      _ = try await response.body.collect()
      #expect(origin.requests.count == 1 && origin.requests.first?.method == .put)
      #expect(throws: CacheError.self) { try delegate.start(task, in: session) }
    }
  }

  @Test("a transfer is in the table until it is cancelled, and a cancelled reader ends at once")
  func cancelled() async throws {
    let delegate = SessionDelegate()
    try await withSession(delegate) { origin, session in
      origin.setRoute("/a", Route(pattern(300), delivery: OriginDelivery(bodyGate: Gate())))
      let transfer = try delegate.start(URLRequest(url: origin.url("/a")), in: session)
      let response = try await transfer.response()
      #expect(delegate.transfers.count == 1 && delegate.transfer(of: transfer.task) === transfer)

      transfer.cancel()
      transfer.cancel()

      await #expect { try await response.body.collect() } throws: { ($0 as? CacheError)?.isCancellation == true }
      #expect(delegate.transfers.isEmpty)
      await origin.waitForOpenConnections(atMost: 0)
    }
  }

  @Test("a transfer whose response is not taken ends, and a released body stops its transfer")
  func untaken() async throws {
    let delegate = SessionDelegate()
    try await withSession(delegate) { origin, session in
      origin.setRoute("/a", Route(pattern(300)))
      origin.setRoute("/b", Route(pattern(300), delivery: OriginDelivery(bodyGate: Gate())))
      _ = try delegate.start(URLRequest(url: origin.url("/a")), in: session)
      try await Polling.until { delegate.transfers.isEmpty }
      _ = try await delegate.start(URLRequest(url: origin.url("/b")), in: session).response().head
      try await Polling.until { delegate.transfers.isEmpty }
      await origin.waitForOpenConnections(atMost: 0)
    }
  }

  @Test("a challenge gets its credential, and the delegate does not retain the target")
  func challenge() async throws {
    let delegate = SessionDelegate()
    weak var observed: Recorder<String>?
    try await withSession(delegate) { origin, session in
      origin.setRoute("/a", Route(pattern(300), credential: OriginCredential(user: "ada", password: "lovelace")))
      do {
        let hosts = Recorder<String>()
        observed = hosts
        delegate.challengeHandler.delegate(on: hosts) { (hosts, challenge) in
          hosts.record(challenge.host)
          return URLCredential(user: "ada", password: "lovelace", persistence: .none)
        }
        let response = try await delegate.start(URLRequest(url: origin.url("/a")), in: session).response()
        #expect(response.head.headerFields[.cacheControl] == "no-store")
        #expect(try await response.body.collect() == pattern(300))
        #expect(hosts.values == ["127.0.0.1"])
      }
      #expect(observed == nil)
      let refused = try await delegate.start(URLRequest(url: origin.url("/a")), in: session).response()
      #expect(refused.head.status == .unauthorized)
    }
  }

  @Test("a body that is longer than announced fails, also if it may be collected", arguments: [0, 100])
  func overlong(collectUpTo: Int) async throws {
    let platform = URLSessionConfiguration.ephemeral
    platform.protocolClasses = [InstantProtocol.self]
    let downloader = SessionDownloader(platform: platform)
    defer { downloader.close() }
    let head = try HTTPRequest(resource: #require(URL(string: "http://origin/a?3")))
    let response = try await downloader.download(DownloadRequest(head: head, collectUpTo: collectUpTo))
    #expect(response.body.length == 3 && response.body.data == nil)
    let error = await #expect(throws: CacheError.self) { try await response.body.collect() }
    #expect(error?.code == .malformedResponse)
  }

  @Test("the session's time-out applies, also an infinite one")
  func infinite() async throws {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.protocolClasses = [InstantProtocol.self]
    let delegate = SessionDelegate()
    let session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
    defer { session.finishTasksAndInvalidate() }
    let url = try #require(URL(string: "http://origin/a"))
    let request = URLRequest(url: url, timeoutInterval: .infinity)
    let response = try await delegate.start(request, in: session).response()
    #expect(try await response.body.collect() == Data("bytes".utf8))
  }

  @Test("a reader that exceeds the buffer limit fails, and a limit below 1 is refused")
  func bufferLimit() async throws {
    let delegate = SessionDelegate()
    try await withSession(delegate) { origin, session in
      // The body is sent after its reader has received the head, so that only the body stays unread.
      let gate = Gate()
      origin.setRoute("/a", Route(pattern(5_000_000), delivery: OriginDelivery(bodyGate: gate, bodyGateOffset: 1)))
      let request = URLRequest(url: origin.url("/a"))
      let transfer = try delegate.start(request, in: session, bufferLimit: 50_000)
      let response = try await transfer.response()
      gate.open()
      try await Polling.until { transfer.hasEnded }
      let error = await #expect(throws: CacheError.self) { try await response.body.collect() }
      #expect(error?.code == .readerTooSlow)

      let task = session.dataTask(with: request)
      for limit in [0, -1] {
        let errors = [
          #expect(throws: CacheError.self) { try delegate.start(request, in: session, bufferLimit: limit) },
          #expect(throws: CacheError.self) { try delegate.start(task, in: session, bufferLimit: limit) },
        ]
        for error in errors { #expect(error?.code == .invalidConfiguration) }
      }
      task.cancel()
    }
  }

  @Test("the transfers that a session has not ended end with it")
  func invalidated() async throws {
    let delegate = SessionDelegate()
    try await withSession(delegate) { origin, session in
      let gate = Gate()
      origin.setRoute("/a", Route(pattern(300), delivery: OriginDelivery(gate: gate)))
      let transfer = try delegate.start(URLRequest(url: origin.url("/a")), in: session)
      let response = Task { try await transfer.response() }

      delegate.urlSession(session, didBecomeInvalidWithError: URLError(.unknown))

      let error = await #expect(throws: CacheError.self) { try await response.value }
      #expect(error?.code == .closed && error?.underlying is URLError)
      #expect(delegate.transfers.isEmpty)
      gate.open()
    }
  }

  @Test("a session with another delegate, an invalidated session and a request without a host are refused")
  func misuse() async throws {
    let (delegate, other) = (SessionDelegate(), SessionDelegate())
    try await withSession(other) { origin, session in
      #expect { try delegate.start(URLRequest(url: origin.url("/a")), in: session) } throws: {
        ($0 as? CacheError)?.code == .misuse
      }
      let relative = try #require(URL(string: "relative"))
      #expect { try other.start(URLRequest(url: relative), in: session) } throws: {
        ($0 as? CacheError)?.code == .invalidURL
      }

      session.finishTasksAndInvalidate()
      // A session releases its delegate when it has ended.
      try await Polling.until { session.delegate == nil }
      #expect { try other.start(URLRequest(url: origin.url("/a")), in: session) } throws: {
        ($0 as? CacheError)?.code == .misuse
      }
    }
  }
}
#endif
