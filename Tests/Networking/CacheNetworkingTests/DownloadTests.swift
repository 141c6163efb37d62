#if Origin
import CacheCore
import CacheNetworking
import Foundation
import HTTPTypes
import CacheTesting
import LoopbackOrigin
import Testing

/// A counter of concurrent requests and of their maximum.
private final class ConcurrencyCounter: Sendable {
  private let counts = Lock((present: 0, most: 0))

  var most: Int { counts.withLock { $0.most } }

  func enter() {
    counts.withLock { counts in
      counts.present += 1
      counts.most = max(counts.most, counts.present)
    }
  }

  func leave() { counts.withLock { $0.present -= 1 } }
}

@Suite("Downloads", .timeLimit(.minutes(30))) struct DownloadTests {
  @Test("interim responses are reported before the head, each with its own fields")
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
    }
  }

  @Test("the downloaded bytes are the origin's", arguments: [0, 1, 20_000, 3_000_000])
  func bytes(count: Int) async throws {
    try await Fixture.run { fixture async throws in
      let image = pattern(count)
      fixture.origin.setRoute("/a.png", Route(image, contentType: "image/png", etag: "v1"))

      let response = try await fixture.get("/a.png")

      #expect(response.head.status == .ok)
      #expect(response.head.headerFields[.eTag] == "\"v1\"")
      #expect(response.head.headerFields[.contentType] == "image/png")
      #expect(response.body.length == Int64(count))
      #expect(try await response.body.collect() == image)
    }
  }

  @Test("a hundred concurrent URLs are downloaded")
  func parallel() async throws {
    try await Fixture.run { fixture async throws in
      for number in 0..<100 { fixture.origin.setRoute("/\(number)", Route(pattern(1000 + number))) }

      try await withThrowingTaskGroup(of: (Int, Data).self) { group in
        for number in 0..<100 {
          group.addTask { (number, try await fixture.get("/\(number)").body.collect()) }
        }
        for try await (number, data) in group { #expect(data == pattern(1000 + number)) }
      }
      #expect(fixture.origin.counters.requests == 100)
    }
  }

  @Test("the number of concurrent requests to a host does not exceed the connection limit")
  func connectionsPerHost() async throws {
    var configuration = SessionDownloader.Configuration()
    configuration.connectionsPerHost = 2
    try await Fixture.run(configuration) { fixture async throws in
      let counter = ConcurrencyCounter()
      fixture.origin.setFallback { _ in
        counter.enter()
        await Task.yield()
        counter.leave()
        return OriginResponse(pattern(100))
      }

      try await withThrowingTaskGroup(of: Data.self) { group in
        for number in 0..<40 { group.addTask { try await fixture.get("/\(number)").body.collect() } }
        for try await data in group { #expect(data == pattern(100)) }
      }

      #expect((1...2).contains(counter.most))
    }
  }

  @Test("every status is a response", arguments: [200, 201, 203, 300, 400, 403, 404, 410, 418, 429, 500, 503])
  func statuses(code: Int) async throws {
    try await Fixture.run { fixture async throws in
      fixture.origin.setRoute("/", Route(Data("why".utf8), status: .init(code: code)))

      let response = try await fixture.get("/")

      #expect(response.head.status.code == code)
      #expect(try await response.body.collect() == Data("why".utf8))
    }
  }

  @Test("a 304 to the caller's condition is returned with its validators and without a body")
  func notModified() async throws {
    try await Fixture.run { fixture async throws in
      fixture.origin.setRoute("/a", Route(pattern(500), etag: "v1", fields: [.cacheControl: "max-age=60"]))

      let response = try await fixture.get("/a", fields: [.ifNoneMatch: "\"v1\""])

      #expect(response.head.status == .notModified)
      #expect(response.head.headerFields[.eTag] == "\"v1\"")
      #expect(response.head.headerFields[.cacheControl] == "max-age=60")
      #expect(response.body.length == 0)
      #expect(try await response.body.collect().isEmpty)
      #expect(fixture.origin.counters(for: "/a").conditionalRequests == 1)
    }
  }

  @Test("each request reaches the origin, because the downloader caches nothing")
  func neverCached() async throws {
    try await Fixture.run { fixture async throws in
      fixture.origin.setRoute("/a", Route(pattern(5), fields: [.cacheControl: "max-age=3600"]))

      for _ in 0..<3 { _ = try await fixture.get("/a").body.collect() }

      #expect(fixture.origin.counters(for: "/a").requests == 3)
    }
  }

  @Test("HEAD returns the head with the length of the GET response")
  func head() async throws {
    try await Fixture.run { fixture async throws in
      fixture.origin.setRoute("/a", Route(pattern(500)))

      let response = try await fixture.downloader.download(fixture.request("/a", method: .head))

      #expect(response.head.headerFields[.contentLength] == "500")
      #expect(response.body.length == 0)
      #expect(try await response.body.collect().isEmpty)
    }
  }

  @Test("a redirect is returned and not followed")
  func redirect() async throws {
    try await Fixture.run { fixture async throws in
      fixture.origin.setRoute("/old", .redirect(to: "/new", status: .movedPermanently))
      fixture.origin.setRoute("/new", Route(pattern(5)))

      let response = try await fixture.get("/old")
      _ = try await response.body.collect()

      #expect(response.head.status == .movedPermanently)
      #expect(response.head.headerFields[.location] == "/new")
      #expect(fixture.origin.counters(for: "/new").requests == 0)
    }
  }

  @Test("a redirect without a target is returned")
  func redirectWithoutLocation() async throws {
    try await Fixture.run { fixture async throws in
      fixture.origin.setRoute("/old", Route(Data("nowhere".utf8), status: .found))

      let response = try await fixture.get("/old")
      let body = try await response.body.collect()

      #expect(response.head.status == .found)
      // Linux discards this body. The head must then not announce it.
      #expect(response.head.headerFields[.contentLength].map { $0 == "\(body.count)" } ?? body.isEmpty)
    }
  }

  @Test("an interim response is not the final one")
  func earlyHints() async throws {
    try await Fixture.run { fixture async throws in
      let delivery = OriginDelivery(interim: [.init(.earlyHints, fields: [.init("Link")!: "</x>; rel=preload"])])
      fixture.origin.setRoute("/a", Route(pattern(50), delivery: delivery))

      let response = try await fixture.get("/a")

      #expect(response.head.status == .ok)
      #expect(response.head.headerFields[.init("Link")!] == nil)
      #expect(try await response.body.collect() == pattern(50))
    }
  }

  @Test("repeated fields are combined into one list")
  func repeatedFields() async throws {
    try await Fixture.run { fixture async throws in
      var fields = HTTPFields()
      fields.append(HTTPField(name: .init("X-Many")!, value: "a"))
      fields.append(HTTPField(name: .init("X-Many")!, value: "b"))
      fixture.origin.setRoute("/a", Route(Data(), fields: fields))

      let response = try await fixture.get("/a")

      #expect(response.head.headerFields[.init("x-many")!] == "a, b")
    }
  }

  @Test("the head of a body that the platform decodes describes the decoded bytes", arguments: ["gzip", "identity, gzip"])
  func decoded(coding: String) async throws {
    try await Fixture.run { fixture async throws in
      let packed = try #require(Data(base64Encoded: "H4sIAAAAAAACA+3BMQEAAADCoNqLbwo/oAAAAACAtwEm8NsAiBMAAA=="))
      fixture.origin.setRoute("/a", Route(packed, fields: [.contentEncoding: coding]))
      var request = try fixture.request("/a")
      request.collectUpTo = 100

      let response = try await fixture.downloader.download(request)
      let body = try await response.body.collect()

      #expect(body == Data(repeating: UInt8(ascii: "x"), count: 5000))
      #expect(response.head.headerFields[.contentEncoding] == nil)
      #expect(response.head.headerFields[.contentLength] == nil)
      #expect(response.body.length == nil)
      #expect(response.metrics().bytesOnWire == Int64(packed.count))
    }
  }

  @Test("the metrics have the number of body bytes and the time to the head")
  func metrics() async throws {
    try await Fixture.run { fixture async throws in
      fixture.origin.setRoute("/a", Route(pattern(12_345)))

      let response = try await fixture.get("/a")
      _ = try await response.body.collect()

      #expect(response.metrics().bytesOnWire == 12_345)
      #expect(try #require(response.metrics().timeToHead) > .zero)
    }
  }

  @Test("progress is reported per chunk, in order, up to the total", arguments: [true, false])
  func progress(knowsLength: Bool) async throws {
    try await Fixture.run { fixture async throws in
      let whole = pattern(300_000)
      let gate = Gate()
      let delivery = OriginDelivery(
        bodyGate: gate, bodyGateOffset: 100_000, framing: knowsLength ? .contentLength : .chunked(of: 5000))
      fixture.origin.setRoute("/a", Route(whole, delivery: delivery))

      let response = try await fixture.get("/a")
      #expect(response.body.length == (knowsLength ? 300_000 : nil))
      var iterator = response.body.makeAsyncIterator()
      var data = try await read(100_000, from: &iterator)
      #expect(data == whole.prefix(100_000), "received bytes can be read before the rest arrives")
      gate.open()
      data += try await read(.max, from: &iterator)

      #expect(data == whole)
    }
  }

  @Test("the request has the method, fields and body")
  func requestParts() async throws {
    var configuration = SessionDownloader.Configuration()
    configuration.userAgent = "Test/1"
    configuration.additionalHeaders = [.accept: "image/*", .acceptLanguage: "de"]
    try await Fixture.run(configuration) { fixture async throws in
      fixture.origin.setRoute("/form?x=1&y=%20", Route(handler: { OriginResponse($0.body) }))
      var fields: HTTPFields = [.acceptLanguage: "fr", .contentType: "text/plain"]
      fields.append(HTTPField(name: .init("X-Many")!, value: "a"))
      fields.append(HTTPField(name: .init("X-Many")!, value: "b"))

      let response = try await fixture.downloader.download(
        fixture.request("/form?x=1&y=%20", method: .put, fields: fields, body: ResourceBody(pattern(70_000))))
      #expect(try await response.body.collect() == pattern(70_000))

      let received = try #require(fixture.origin.requests.first)
      #expect(received.method == .put)
      #expect(received.target == "/form?x=1&y=%20")
      #expect(received.fields[.userAgent] == "Test/1")
      #expect(received.fields[.accept] == "image/*")
      #expect(received.fields[.acceptLanguage] == "fr")
      #expect(received.fields[.contentType] == "text/plain")
      #expect(received.fields[.init("X-Many")!] == "a, b")
      #expect(received.fields[.contentLength] == "70000")
    }
  }

  @Test("a body without a type is sent as octets and not as a form")
  func untypedBody() async throws {
    try await Fixture.run { fixture async throws in
      fixture.origin.setRoute("/", Route(Data()))

      _ = try await fixture.downloader.download(fixture.request("/", method: .post, body: ResourceBody(pattern(5)))).body
        .collect()

      #expect(fixture.origin.requests.first?.fields[.contentType] == "application/octet-stream")
      #expect(fixture.origin.requests.first?.body == pattern(5))
    }
  }

  @Test("cookies are neither stored nor sent")
  func cookies() async throws {
    try await Fixture.run { fixture async throws in
      fixture.origin.setRoute("/", Route(Data(), fields: [.setCookie: "a=b; Path=/"]))

      for _ in 0..<2 { _ = try await fixture.get("/").body.collect() }

      #expect(fixture.origin.requests.map { $0.fields[.cookie] } == [nil, nil])
    }
  }

  @Test("a request that cannot be sent fails before any byte is sent")
  func refusedRequests() async throws {
    try await Fixture.run { fixture async throws in
      let file = DownloadRequest(head: HTTPRequest(method: .get, scheme: "file", authority: nil, path: "/etc/hosts"))
      let hostless = DownloadRequest(head: HTTPRequest(method: .get, scheme: "http", authority: nil, path: "/"))
      let relative = DownloadRequest(head: HTTPRequest(method: .get, scheme: nil, authority: nil, path: "/a"))
      let getWithBody = try fixture.request("/", body: ResourceBody(pattern(5)))

      #expect(await fixture.failure(of: file)?.code == .unsupportedScheme)
      #expect(await fixture.failure(of: hostless)?.code == .invalidURL)
      #expect(await fixture.failure(of: relative)?.code == .invalidURL)
      #expect(await fixture.failure(of: getWithBody)?.code == .invalidConfiguration)
      #expect(fixture.origin.counters.requests == 0)
    }
  }
}
#endif
