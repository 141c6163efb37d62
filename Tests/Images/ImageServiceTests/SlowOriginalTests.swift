#if Service
import CacheTesting
import Foundation
import HTTPTypes
import ImageService
import Testing

@Suite("Originals of clients that do not read")
struct SlowOriginalTests {
  /// An origin that refuses a request beyond eight open connections, so that a test fails and does not wait.
  private final class Origin: Downloader {
    static let connections = 8
    static let count = 64
    static let chunk = Data(repeating: 7, count: 64 << 10)

    private struct State {
      var open = 0
      var pulled = 0
      var requests = 0
    }

    private let state = Lock(State())
    private let image: Data
    private let cacheControl: String

    init(image: Data, cacheControl: String = "max-age=60") { (self.image, self.cacheControl) = (image, cacheControl) }

    var id: ComponentID { ComponentID(Self.self) }
    var open: Int { state.withLock { $0.open } }
    var pulled: Int { state.withLock { $0.pulled } }
    var requests: Int { state.withLock { $0.requests } }

    func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
      let isAccepted = state.withLock { state in
        state.requests += 1
        return state.open < Self.connections
      }
      guard isAccepted else { throw CacheError(.timedOut, reason: "no connection is free") }
      if request.head.path == "/moved" {
        let fields: HTTPFields = [.location: "/large", .contentLength: "0", .cacheControl: "no-store"]
        return DownloadResponse(head: HTTPResponse(status: .found, headerFields: fields), body: ResourceBody(Data()))
      }
      var fields: HTTPFields = [.cacheControl: cacheControl]
      guard request.head.path?.hasPrefix("/large") == true else {
        return DownloadResponse(head: HTTPResponse(status: .ok, headerFields: fields), body: ResourceBody(image))
      }
      let length = Int64(Self.count * Self.chunk.count)
      fields[.contentLength] = "\(length)"
      state.withLock { $0.open += 1 }
      return DownloadResponse(
        head: HTTPResponse(status: .ok, headerFields: fields), body: ResourceBody(length: length, source: Connection(self)))
    }

    fileprivate func pull() { state.withLock { $0.pulled += 1 } }

    fileprivate func close() { state.withLock { $0.open -= 1 } }
  }

  private final class Connection: ResourceBody.Source {
    private let origin: Origin
    /// The number of chunks left, or `nil` if the connection is closed.
    private let left = Lock<Int?>(Origin.count)

    init(_ origin: Origin) { self.origin = origin }

    deinit { cancel() }

    func next() async throws(CacheError) -> Data? {
      guard let left = left.withLock({ $0 }), left > 0 else {
        cancel()
        return nil
      }
      self.left.withLock { $0 = left - 1 }
      origin.pull()
      return Origin.chunk
    }

    func cancel() {
      let wasOpen = left.withLock { left in
        defer { left = nil }
        return left != nil
      }
      if wasOpen { origin.close() }
    }

    var trailers: HTTPFields? { nil }
  }

  private let image: Data

  init() throws { image = try DrawnImage.png(8, 8) }

  private func fixture(_ origin: Origin, hasStore: Bool = true) throws -> ServiceFixture {
    try ServiceFixture {
      $0.sources = [try .origin("https://photos.example.com"), try .origin("https://others.example.com")]
      $0.cache.downloader = origin
      if !hasStore { $0.cache.store = nil }
    }
  }

  /// Returns a response whose body is not read.
  private func original(
    _ fixture: ServiceFixture, _ path: String, host: String = "photos", method: HTTPRequest.Method = .get
  ) async -> ImageResponse {
    let path = fixture.key.path(for: "https://\(host).example.com\(path)", operations: "original")
    return await fixture.service.respond(
      to: HTTPRequest(method: method, scheme: "https", authority: "img.example.com", path: path))
  }

  @Test("with a store, originals that are not read hold no connection")
  func stored() async throws {
    let origin = Origin(image: image)
    let fixture = try fixture(origin)
    var responses: [ImageResponse] = []
    for number in 0...Origin.connections { responses.append(await original(fixture, "/large?\(number)")) }
    #expect(responses.allSatisfy { $0.head.status == .ok })
    #expect(origin.open == 0)
    #expect(try await fixture.get("width=4").status == 200)
    for response in responses { #expect(try await response.body.collect().count == Origin.count * Origin.chunk.count) }
    #expect(origin.requests == Origin.connections + 2)
  }

  @Test(
    "an original that is stored is loaded once, also if it must be validated before its next use",
    arguments: ["max-age=60", "no-cache", "max-age=0, must-revalidate", "no-store"], ["/large", "/moved"])
  func once(_ cacheControl: String, _ path: String) async throws {
    let origin = Origin(image: image, cacheControl: cacheControl)
    let response = await original(try fixture(origin), path)
    #expect(response.head.status == .ok)
    #expect(try await response.body.collect().count == Origin.count * Origin.chunk.count)
    #expect(origin.pulled == Origin.count && origin.open == 0)
  }

  @Test("with a store, a second HEAD of an original sends no request")
  func head() async throws {
    let origin = Origin(image: image)
    let fixture = try fixture(origin)
    for _ in 0..<2 {
      let response = await original(fixture, "/large", method: .head)
      #expect(response.head.headerFields[.contentLength] == "\(Origin.count * Origin.chunk.count)")
    }
    #expect(origin.requests == 1)
  }

  @Test(
    "four originals of a host stream, a fifth gets 503, and results are made; with or without a store",
    arguments: [true, false])
  func streaming(_ hasStore: Bool) async throws {
    let origin = Origin(image: image, cacheControl: hasStore ? "no-store" : "max-age=60")
    let fixture = try fixture(origin, hasStore: hasStore)
    var responses: [ImageResponse] = []
    for number in 0..<4 { responses.append(await original(fixture, "/large?\(number)")) }
    #expect(responses.allSatisfy { $0.head.status == .ok } && origin.open == 4)
    #expect(origin.pulled <= 16)
    // When the limit is reached
    let refused = await original(fixture, "/large?5")
    #expect(refused.head.status == .serviceUnavailable && refused.head.headerFields[.retryAfter] == "1")
    #expect(origin.open == 4)
    // Then results and other hosts are not affected
    #expect(try await fixture.get("width=4").status == 200)
    #expect(await original(fixture, "/large", host: "others").head.status == .ok)
    // And a reader that reads to the end, cancels or leaves makes room for another one
    let first = responses.removeFirst()
    #expect(try await first.body.collect().count == Origin.count * Origin.chunk.count)
    responses.append(await original(fixture, "/large?6"))
    responses[0].body.source.cancel()
    responses.append(await original(fixture, "/large?7"))
    responses.remove(at: 1)
    responses.append(await original(fixture, "/large?8"))
    #expect(responses.allSatisfy { $0.head.status == .ok })
    #expect(await original(fixture, "/large?9").head.status == .serviceUnavailable)
  }
}
#endif
