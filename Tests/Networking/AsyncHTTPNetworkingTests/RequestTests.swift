#if AsyncHTTP && Origin
import AsyncHTTPClient
import AsyncHTTPNetworking
import CacheCore
import CacheTesting
import Foundation
import HTTPTypes
import LoopbackOrigin
import NIOPosix
import Testing

@Suite("Requests on async-http-client", .timeLimit(.minutes(30)))
struct RequestTests {
  @Test("interim responses are reported before the head, each with its own fields, and the server sees no mark of that")
  func interim() async throws {
    try await Fixture.run { fixture async throws in
      let hints = [HTTPFields([HTTPField(name: .contentLanguage, value: "la")]), HTTPFields([HTTPField(name: .age, value: "7")])]
      fixture.origin.setRoute("/a", Route(Data("final".utf8), delivery: .init(interim: hints.map { .init(fields: $0) })))
      let reported = Lock<[HTTPResponse]>([])
      for path in ["/a", "/a", "/b"] {
        reported.withLock { $0 = [] }
        var request = DownloadRequest(head: try HTTPRequest(resource: fixture.origin.url(path)))
        request.onInterimResponse = { head in reported.withLock { $0.append(head) } }
        let response = try await fixture.downloader.download(request)
        let interim = reported.withLock { $0 }
        #expect(interim.map(\.status.code) == (path == "/a" ? [103, 103] : []))
        #expect(interim.map { $0.headerFields[.contentLanguage] } == (path == "/a" ? ["la", nil] : []))
        #expect(interim.map { $0.headerFields[.age] } == (path == "/a" ? [nil, "7"] : []))
        #expect(response.head.headerFields[.contentLanguage] == nil && response.head.headerFields[.age] == nil)
        _ = try await response.body.collect()
      }
      // A request without a receiver, on the same connection, reports nothing to the former one.
      #expect(try await fixture.get("/a").head.status == .ok && reported.withLock { $0.isEmpty })
      // A request with a body has a client of its own.
      var upload = try fixture.request("/a", method: .post, body: ResourceBody(Data("b".utf8)))
      upload.onInterimResponse = { head in reported.withLock { $0.append(head) } }
      #expect(try await fixture.downloader.download(upload).head.status == .ok && reported.withLock { $0.count } == 2)
      let names = Set(fixture.origin.requests.flatMap { $0.fields.map(\.name.canonicalName) })
      #expect(names.allSatisfy { !$0.contains("etagere") }, "\(names)")
    }
  }

  @Test("fields of the message are sent unchanged, and fields of the connection and of framing are not sent")
  func fields() async throws {
    try await Fixture.run(.init { $0.userAgent = "tests" }) { fixture in
      let own = try #require(HTTPField.Name("X-Own"))
      let hop = try #require(HTTPField.Name("X-Hop"))
      let upgrade = try #require(HTTPField.Name("Upgrade"))
      let fields: HTTPFields = [
        own: "a, \"b\" ä", .acceptEncoding: "br", .connection: "x-hop, close", hop: "1", .te: "trailers", upgrade: "h2c",
        .contentLength: "77", .transferEncoding: "chunked",
      ]
      _ = try await fixture.get("/fields?x=%2F&y=a+b", fields: fields)
      let received = try #require(fixture.origin.requests.last)
      #expect(received.target == "/fields?x=%2F&y=a+b")
      #expect(received.fields[own] == "a, \"b\" ä")
      #expect(received.fields[.acceptEncoding] == "br")
      #expect(received.fields[.userAgent] == "tests")
      for name in [HTTPField.Name.connection, hop, .te, upgrade, .contentLength, .transferEncoding] {
        #expect(received.fields[name] == nil, "\(name)")
      }
    }
  }

  @Test(
    "a target is sent unchanged, even if URLs encode it differently",
    arguments: ["/a?filter[x]=1|2", "/{a}", "/100%", "/%zz", "/a%2fb", "/a?", "/%E9", "/caf%E9/menu?a=%FF", "/x%F0%28"])
  func exactTarget(target: String) async throws {
    try await Fixture.run { fixture in
      var fields = HTTPFields()
      // Callers cannot set the field that carries the target to the connection.
      fields[try #require(HTTPField.Name("Etagere-Exact-Target"))] = "/elsewhere"
      let head = HTTPRequest(
        method: .get, scheme: "http", authority: "127.0.0.1:\(fixture.origin.port)", path: target, headerFields: fields)
      _ = try await fixture.downloader.download(DownloadRequest(head: head)).body.collect()
      _ = try await fixture.downloader.download(DownloadRequest(head: head, body: ResourceBody(Data("x".utf8)))).body.collect()
      #expect(fixture.origin.requests.map(\.target) == [target, target])
      #expect(fixture.origin.requests.allSatisfy { !$0.fields.contains { $0.name.rawName.hasPrefix("Etagere") } })
    }
  }

  @Test("a target that has no exact form is encoded, and its escapes stay")
  func encodedTarget() async throws {
    try await Fixture.run { fixture in
      let head = HTTPRequest(
        method: .get, scheme: "http", authority: "127.0.0.1:\(fixture.origin.port)", path: "/é%20x?[%5B]")
      _ = try await fixture.downloader.download(DownloadRequest(head: head)).body.collect()
      #expect(fixture.origin.requests.map(\.target) == ["/%C3%A9%20x?%5B%5B%5D"])
    }
  }

  @Test("a caller's client sends no other path than the one that was asked for")
  func pathOfOwnClient() async throws {
    let client = HTTPClient(eventLoopGroup: MultiThreadedEventLoopGroup.singleton)
    try await Fixture.run(AsyncHTTPDownloader(client: client)) { fixture in
      #expect(await fixture.failure(of: try fixture.request("/%E9", method: .delete))?.code == .invalidURL)
      _ = try await fixture.downloader.download(try fixture.request("/%C3%A9")).body.collect()
      #expect(fixture.origin.requests.map(\.target) == ["/%C3%A9"])
    }
    try await client.shutdown()
  }

  @Test("a body is sent with its length if it is known, and in chunks otherwise", arguments: [true, false])
  func framing(isKnown: Bool) async throws {
    try await Fixture.run { fixture in
      fixture.origin.setRoute("/", Route(Data()))
      let pieces = (0..<20).map { _ in pattern(10_000) }
      let body = ResourceBody(length: isKnown ? 200_000 : nil, source: MadeBody(pieces.map { .success($0) }))
      _ = try await fixture.downloader.download(fixture.request("/", method: .put, body: body)).body.collect()
      let received = try #require(fixture.origin.requests.last)
      #expect(received.body == pieces.reduce(Data(), +))
      #expect(received.fields[.contentLength] == (isKnown ? "200000" : nil))
      #expect(received.fields[.transferEncoding] == (isKnown ? nil : "chunked"))
    }
  }

  @Test("a host may be an IPv6 literal")
  func addressLiteral() async throws {
    let server = try await EarlyServer.start(on: "[::1]")
    let downloader = try Fixture.downloader()
    let response = try await downloader.download(DownloadRequest(head: HTTPRequest(resource: server.url)))
    #expect(response.head.status == .contentTooLarge)
    await downloader.close()
    try await server.stop()
  }

  @Test("an empty body is sent as empty")
  func empty() async throws {
    try await Fixture.run { fixture in
      fixture.origin.setRoute("/", Route(Data("ok".utf8)))
      let request = try fixture.request("/", method: .post, body: ResourceBody(Data()))
      #expect(try await fixture.downloader.download(request).body.collect() == Data("ok".utf8))
      #expect(fixture.origin.requests.last?.fields[.contentLength] == "0")
    }
  }

  @Test("a body that fails ends its request with its error")
  func failingBody() async throws {
    try await Fixture.run { fixture in
      fixture.origin.setRoute("/", Route(Data()))
      let broken = CacheError(.diskFull, reason: "no more to send")
      for length in [Int64(20), nil] {
        let body = ResourceBody(length: length, source: MadeBody([.success(pattern(10)), .failure(broken)]))
        let error = await fixture.failure(of: try fixture.request("/", method: .post, body: body))
        #expect(error?.code == .diskFull)
        #expect(error?.reason == broken.reason)
      }
      #expect(try await fixture.get("/").head.status == .ok)
    }
  }

  @Test("a body whose length differs from the announced one is an error", arguments: [5, 15])
  func wrongLength(claimed: Int64) async throws {
    try await Fixture.run { fixture in
      fixture.origin.setRoute("/", Route(Data()))
      let body = ResourceBody(length: claimed, source: MadeBody([.success(pattern(10))]))
      let error = await fixture.failure(of: try fixture.request("/", method: .post, body: body))
      #expect(error?.code == .misuse)
    }
  }

  @Test("a response before the end of the request body is returned, and the body is cancelled")
  func earlyResponse() async throws {
    let server = try await EarlyServer.start()
    let downloader = try Fixture.downloader()
    let endless = EndlessBody()
    let head = try HTTPRequest(resource: server.url, method: .post)
    let response = try await downloader.download(DownloadRequest(head: head, body: ResourceBody(length: nil, source: endless)))
    #expect(response.head.status.code == 413)
    #expect(try await response.body.collect() == Data("too much".utf8))
    for await _ in endless.cancellation {}
    await downloader.close()
    try await server.stop()
  }

  @Test("a cancelled upload fails with the cancellation and cancels the body")
  func cancelledUpload() async throws {
    try await Fixture.run { fixture in
      let endless = EndlessBody()
      let request = try fixture.request("/", method: .post, body: ResourceBody(length: nil, source: endless))
      let running = Task { await fixture.failure(of: request) }
      await endless.gate.arrived()
      running.cancel()
      #expect(await running.value?.isCancellation == true)
      for await _ in endless.cancellation {}
      endless.gate.open()
    }
  }

  @Test(
    "a request that cannot be sent is refused",
    arguments: [
      (HTTPRequest(method: .get, scheme: nil, authority: nil, path: "/"), CacheError.Code.invalidURL),
      (HTTPRequest(method: .get, scheme: "http", authority: nil, path: "/"), .invalidURL),
      (HTTPRequest(method: .get, scheme: "http", authority: "127.0.0.1:9#@trusted.example", path: "/"), .invalidURL),
      (HTTPRequest(method: .get, scheme: "http", authority: "127.0.0.1\\@trusted.example", path: "/"), .invalidURL),
      (HTTPRequest(method: .get, scheme: "http", authority: "trusted", path: ".invalid/"), .invalidURL),
      (HTTPRequest(method: .get, scheme: "ftp", authority: "a", path: "/"), .unsupportedScheme),
      (HTTPRequest(method: .get, scheme: "http", authority: "name.invalid", path: "/"), .hostNotFound),
    ])
  func refused(_ head: HTTPRequest, code: CacheError.Code) async throws {
    // Longer than a resolver waits for a silent name server.
    let downloader = try AsyncHTTPDownloader(configuration: .init { $0.connectTimeout = .seconds(600) })
    #expect(await failure(downloader, DownloadRequest(head: head, idleTimeout: .seconds(600)))?.code == code)
    await downloader.close()
  }
}

/// A body whose fourth chunk is delayed until it is cancelled.
private final class EndlessBody: ResourceBody.Source {
  let gate = Gate()
  /// A stream that ends when the body is cancelled.
  let cancellation: AsyncStream<Never>
  private let cancelled: AsyncStream<Never>.Continuation
  private let state = Lock((count: 0, isCancelled: false))

  init() { (cancellation, cancelled) = AsyncStream.makeStream() }

  private var isCancelled: Bool { state.withLock { $0.isCancelled } }

  func next() async throws(CacheError) -> Data? {
    let count = state.withLock { state in
      state.count += 1
      return state.count
    }
    if count == 4 { await gate.pass() }
    if isCancelled { throw .cancelled }
    return pattern(1_000)
  }

  func cancel() {
    state.withLock { $0.isCancelled = true }
    cancelled.finish()
    gate.open()
  }

  var trailers: HTTPFields? { nil }
}
#endif
