import CacheCore
import CacheTesting
import CacheTransport
import Foundation
import HTTPTypes
import Testing

@Suite("Collected bodies through wrappers")
struct CollectedBodyTests {
  private let network = ScriptedDownloader()
  private let clock = ManualClock()

  /// The wrappers that do not change bytes.
  private var wrappers: [any Downloader] {
    let resolver = FixedResolver()
    return [
      network.retrying(.standard, clock: clock), network.resuming(.standard, clock: clock),
      network.resuming(.standard, clock: clock).retrying(.standard, clock: clock),
      network.limitingConcurrency(TransferLimits(total: 1), clock: clock), network.limitingBodies(to: 5),
      network.rateLimited(perSecond: 1_000, burst: 100, clock: clock), network.respectingRetryAfter(clock: clock),
      network.restrictingAddresses(to: .publicOnly, resolver: resolver, clock: clock),
      network.intercepted(by: RequestInterceptor(willSend: { $0.head.headerFields[.userAgent] = "test" })),
      network.hooked(by: DownloaderHooks { $0.onRequestSent = Delegate { _ in } }),
    ]
  }

  private struct FixedResolver: HostResolver {
    let id = ComponentID(FixedResolver.self)
    func addresses(of host: String) async throws(CacheError) -> [IPAddress] { [IPAddress("93.184.216.34")].compactMap(\.self) }
  }

  private func request(_ url: URL, collectUpTo: Int) throws -> DownloadRequest {
    var request = try TestRequest.request(url.absoluteString)
    request.collectUpTo = collectUpTo
    return request
  }

  @Test("a wrapper passes the permission on, and the body in one piece back")
  func passed() async throws {
    let url = try TestRequest.url("https://example.com/a")
    network.serve(url) { _ in .ok("bytes", etag: "\"1\"") }
    for downloader in wrappers {
      let collected = try await downloader.download(request(url, collectUpTo: 5))
      #expect(collected.body.data == Data("bytes".utf8), "\(type(of: downloader))")
      #expect(collected.metrics().bytesDecoded == 5 && collected.metrics().attempts == 1, "\(type(of: downloader))")
      let streamed = try await downloader.download(request(url, collectUpTo: 4))
      #expect(streamed.body.data == nil, "\(type(of: downloader))")
      #expect(try await streamed.body.collect() == Data("bytes".utf8), "\(type(of: downloader))")
    }
  }

  #if ContentDecoding
  @Test("a collected body that is decoded is a stream of unknown length")
  func decoded() async throws {
    let url = try TestRequest.url("https://example.com/a")
    let (text, packed) = (Coded.text(10_000), Coded.encode(Coded.text(10_000)))
    network.serve(url) { _ in .response(.ok, fields: [.contentEncoding: "gzip"], body: packed) }
    let response = try await network.decoding().download(request(url, collectUpTo: packed.count))
    #expect(response.body.data == nil && response.body.length == nil)
    #expect(response.head.headerFields[.contentEncoding] == nil && response.head.headerFields[.contentLength] == nil)
    #expect(try await response.body.collect() == text)
    #expect(response.metrics().bytesDecoded == 10_000 && response.metrics().bytesOnWire == Int64(packed.count))
  }
  #endif

  @Test("a limit refuses a collected body that is larger")
  func limited() async throws {
    let url = try TestRequest.url("https://example.com/a")
    network.respond(to: url, with: .ok("bytes"))
    let error = await #expect(throws: CacheError.self) {
      try await network.limitingBodies(to: 4).download(request(url, collectUpTo: 100))
    }
    #expect(error?.code == .bodyTooLarge)
  }

  @Test("a body that is cut off while it may be collected is resumed")
  func resumed() async throws {
    let url = try TestRequest.url("https://example.com/a")
    let whole = ScriptedResponse.ok("abcdefgh", etag: "\"1\"")
    network.respond(to: url, with: whole.cut(after: 3), whole.part(from: 3))
    let response = try await network.resuming(.standard, clock: clock).download(request(url, collectUpTo: 100))
    #expect(response.body.data == nil)
    #expect(try await response.body.collect() == Data("abcdefgh".utf8))
    #expect(network.requests.map { $0.headerFields[.range] } == [nil, "bytes=3-"])
  }

  @Test("hooks that get bytes are called for a collected body")
  func hooks() async throws {
    let url = try TestRequest.url("https://example.com/a")
    network.serve(url) { _ in .ok("bytes") }
    let calls = Lock<[String]>([])
    let hooks = DownloaderHooks {
      $0.onDataReceived = AsyncDelegate { exchange in
        calls.withLock { $0.append("data \(exchange.data.count)") }
        return Data(exchange.data.reversed())
      }
      $0.onDownloadingFinished = Delegate { exchange in calls.withLock { $0.append("finished \(exchange.error == nil)") } }
    }
    let replaced = try await network.hooked(by: hooks).download(request(url, collectUpTo: 100))
    #expect(calls.withLock { $0 }.isEmpty)
    #expect(try await replaced.body.collect() == Data("setyb".utf8))
    #expect(calls.withLock { $0 } == ["data 5", "finished true"])
  }

  @Test("the end of a collected body is reported once, although its stream is not read")
  func finished() async throws {
    let url = try TestRequest.url("https://example.com/a")
    network.serve(url) { _ in .ok("bytes") }
    let ends = Lock<[Int?]>([])
    let hooks = DownloaderHooks {
      $0.onDownloadingFinished = Delegate { exchange in ends.withLock { $0.append(exchange.response?.status.code) } }
    }
    do {
      let response = try await network.hooked(by: hooks).download(request(url, collectUpTo: 100))
      #expect(response.body.data == Data("bytes".utf8))
    }
    #expect(ends.withLock { $0 } == [200])
  }
}
