import CacheCore
import CacheManager
import CacheTesting
import Foundation
import HTTPTypes
import Testing

@Suite("Requests with a body")
struct RequestBodyTests {
  private func request(_ url: URL, _ method: HTTPRequest.Method = .post) -> ResourceRequest {
    ResourceRequest(url, method: method, body: RequestBody(Data("hello".utf8), contentType: "text/plain"))
  }

  @Test("the body is sent with its media type, unless the request states one")
  func contentType() async throws {
    let network = ClosureDownloader { _ throws(CacheError) in .streaming(["done"]) }
    let fixture = try ManagerFixture { $0.downloader = network }
    var stated = request(fixture.url)
    stated.headerFields[.contentType] = "text/markdown"

    #expect(try await fixture.manager.load(request(fixture.url)).text == "done")
    _ = try await fixture.manager.load(stated)

    #expect(network.seen.map(\.body) == ["hello", "hello"] && network.seen.map(\.head.method) == [.post, .post])
    #expect(network.seen.map(\.head.headerFields[.contentType]) == ["text/plain", "text/markdown"])
  }

  @Test(
    "307 and 308 send the body again, even to another host, and 303 and a 301 or 302 after a POST lead to a GET without it",
    arguments: [(307, true), (308, true), (301, false), (302, false), (303, false)])
  func redirects(_ status: Int, _ isSentAgain: Bool) async throws {
    let network = ClosureDownloader { seen throws(CacheError) in
      seen.head.authority == "example.com"
        ? .redirect(to: "https://other.example/", status: .init(code: status)) : .streaming(["done"])
    }
    let fixture = try ManagerFixture { $0.downloader = network }

    _ = try await fixture.manager.load(request(fixture.url))

    let last = try #require(network.seen.last)
    #expect(network.seen.count == 2)
    #expect(last.body == (isSentAgain ? "hello" : nil) && last.head.method == (isSentAgain ? .post : .get))
    #expect(last.head.headerFields[.contentType] == (isSentAgain ? "text/plain" : nil))
  }

  @Test("the body is opened for each request, and an error of opening it ends the load")
  func opening() async throws {
    let opened = Counter()
    let network = ClosureDownloader { seen throws(CacheError) in
      seen.attempt < 3
        ? .streaming(["x"], then: CacheError(.bodyInterrupted, reason: "broken off")) : .streaming(["done"])
    }
    let fixture = try ManagerFixture { $0.downloader = network }
    let body = RequestBody { () throws(CacheError) in
      opened.increment()
      return ResourceBody(Data("part \(opened.value)".utf8))
    }
    let unreadable = RequestBody { () throws(CacheError) in throw CacheError(.fileSystem, reason: "gone", path: "/x") }

    _ = try await fixture.manager.load(ResourceRequest(fixture.url, method: .put, body: body))
    let error = await #expect(throws: CacheError.self) {
      try await fixture.manager.load(ResourceRequest(fixture.url, method: .put, body: unreadable))
    }

    #expect(network.seen.map(\.body) == ["part 1", "part 2", "part 3"])
    #expect(error?.code == .fileSystem && error?.path == "/x")
  }

  @Test(
    "requests with a body are not shared, not satisfied from the cache, and not stored",
    arguments: [HTTPRequest.Method.post, .get])
  func uncached(_ method: HTTPRequest.Method) async throws {
    let gate = Gate(isOpen: true)
    let network = ClosureDownloader { seen throws(CacheError) in
      await gate.pass()
      return .streaming([seen.body ?? "stored"], fields: [.cacheControl: "max-age=600"])
    }
    let fixture = try ManagerFixture { $0.downloader = network }
    let kind = RequestOptions { $0.policy = .cacheOnly }
    if method == .get { _ = try await fixture.manager.load(fixture.url) }
    gate.close()

    async let one = fixture.manager.load(request(fixture.url, method))
    async let two = fixture.manager.load(request(fixture.url, method))
    await gate.arrived(method == .get ? 3 : 2)
    gate.open()

    #expect(try await [one.text, two.text] == ["hello", "hello"])
    if method == .get {
      #expect(try await fixture.manager.load(fixture.url, options: kind).text == "stored")
    } else {
      #expect(try await fixture.failure(fixture.url, kind).code == .notCached)
    }
  }

  @Test("an unexpected 304 does not send a forwarded request again with an empty body", arguments: [true, false])
  func forwarded(isStream: Bool) async throws {
    let network = PullingDownloader(.streaming([], status: .notModified), .streaming(["done"]))
    let fixture = try ManagerFixture { $0.downloader = network }
    let request = HTTPRequest(method: .get, scheme: "https", authority: "example.com", path: "/search")
    guard isStream else {
      let response = try await fixture.manager.respond(to: request, body: ResourceBody(Data("query".utf8)))
      #expect(try await response.body.collect() == Data("done".utf8))
      #expect(network.bodies == ["query", "query"])
      return
    }

    let error = await #expect(throws: CacheError.self) {
      try await fixture.manager.respond(to: request, body: ResourceBody(length: 5, source: ChunkedBody(["qu", "ery"])))
    }

    #expect(error?.code == .malformedResponse && error?.status == 304)
    #expect(network.bodies == ["query"])
  }

  @Test("an unexpected 304 does not send a POST twice")
  func notModified() async throws {
    let network = ClosureDownloader { _ throws(CacheError) in .streaming([], status: .notModified) }
    let fixture = try ManagerFixture { $0.downloader = network }

    await #expect(throws: CacheError.self) { try await fixture.manager.load(request(fixture.url)) }

    #expect(network.seen.count == 1)
  }
}

/// A downloader that reads each request's body chunk by chunk, as an engine does.
private final class PullingDownloader: Downloader {
  let id = ComponentID.unique(PullingDownloader.self)
  private let state: Lock<(bodies: [String], responses: [DownloadResponse])>

  init(_ responses: DownloadResponse...) { state = Lock(([], responses)) }

  var bodies: [String] { state.withLock { $0.bodies } }

  func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    var data = Data()
    while let chunk = try await request.body?.source.next() { data.append(chunk) }
    let response = state.withLock { state in
      state.bodies.append(String(decoding: data, as: UTF8.self))
      return state.responses.isEmpty ? nil : state.responses.removeFirst()
    }
    guard let response else { throw CacheError(.unscripted, reason: "no response is left") }
    return response
  }
}
