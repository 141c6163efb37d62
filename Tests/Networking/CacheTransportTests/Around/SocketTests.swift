import CacheCore
import CacheNetworking
import CacheTesting
import CacheTransport
import Foundation
import HTTPTypes
import LoopbackOrigin
import Testing

@Suite("Wrappers around an engine with sockets")
struct SocketTests {
  @Test("a load works with the whole stack")
  func stack() async throws {
    let origin = try await OriginServer.start()
    origin.setRoute("/a", Route(pattern(100_000), etag: "v1"))
    let own = try #require(IPAddress("127.0.0.1"))
    let downloader = SessionDownloader.patient()
      .restrictingAddresses(to: AddressPolicy(refusing: .all, except: [own]))
      .intercepted(by: RequestInterceptor(willSend: { $0.head.headerFields[.userAgent] = "App/1" }))
      .limitingConcurrency(TransferLimits(total: 16, perHost: 6))
      .rateLimited(perSecond: 1_000, burst: 25)
      .limitingBodies(to: 1 << 20)
    let response = try await downloader.download(DownloadRequest(head: HTTPRequest(resource: origin.url("/a"))))
    #expect(try await response.body.collect() == pattern(100_000))
    #expect(origin.requests.first?.fields[.userAgent] == "App/1")
    await origin.stop()
  }

  @Test("limits hold on the network, and releasing a body frees its slot")
  func limits() async throws {
    let origin = try await OriginServer.start()
    let (gate, until) = (Gate(), Gate())
    origin.setRoute("/held", Route(pattern(200_000), delivery: OriginDelivery(bodyGate: gate, bodyGateOffset: 1_000)))
    let downloader = LimitedDownloader(SessionDownloader.patient(), limits: TransferLimits(total: 4, perHost: 2))
    let url = origin.url("/held")
    let tasks = (0..<6).map { _ in
      Task {
        let request = DownloadRequest(head: try HTTPRequest(resource: url))
        // Stored here and not as the task's result, which would live as long as the task.
        let response = try await downloader.download(request)
        await until.pass()
        _ = response.head
      }
    }
    await origin.waitForRequests(count: 2)
    try await Polling.until { downloader.waitingTransfers == 4 }
    #expect(origin.requests.count == 2)
    for task in tasks { task.cancel() }
    for task in tasks { _ = try? await task.value }
    gate.open()
    try await Polling.until { downloader.activeTransfers == 0 }

    let body = try await downloader.download(DownloadRequest(head: HTTPRequest(resource: url))).body
    #expect(try await body.collect() == pattern(200_000))
    #expect(downloader.activeTransfers == 0)
    await origin.stop()
  }

  @Test("a body that is too large is stopped on the network")
  func size() async throws {
    let origin = try await OriginServer.start()
    origin.setRoute("/large", Route(pattern(1_000_000)))
    origin.setRoute("/chunked", Route(pattern(1_000_000), delivery: .chunked()))
    let downloader = SessionDownloader.patient().limitingBodies(to: 100_000)
    for path in ["/large", "/chunked"] {
      let request = DownloadRequest(head: try HTTPRequest(resource: origin.url(path)))
      #expect(await failure { _ = try await downloader.download(request).body.collect() }?.code == .bodyTooLarge)
    }
    await origin.stop()
  }

  @Test("this machine's own services are refused by any name")
  func guarded() async throws {
    let origin = try await OriginServer.start()
    origin.setRoute("/secret", Route(Data("secret".utf8)))
    let downloader = SessionDownloader.patient().restrictingAddresses(to: .publicOnly)
    for host in ["127.0.0.1", "localhost", "127.1", "2130706433", "0x7f000001", "[::ffff:127.0.0.1]", "localhost.", "0"] {
      let url = try TestRequest.url("http://\(host):\(origin.port)/secret")
      let error = await failure { _ = try await downloader.download(DownloadRequest(head: HTTPRequest(resource: url))) }
      #expect(error?.code == .addressRefused, "\(host)")
    }
    #expect(origin.requests.isEmpty)
    await origin.stop()
  }

  #if ContentDecoding
  @Test("a body that the engine has already decoded is returned unchanged")
  func decoded() async throws {
    let origin = try await OriginServer.start()
    let text = Coded.text(100_000)
    origin.setRoute("/text", Route(Coded.encode(text), fields: [.contentEncoding: "gzip"]))
    let downloader = SessionDownloader.patient().decoding()
    let response = try await downloader.download(DownloadRequest(head: HTTPRequest(resource: origin.url("/text"))))
    #expect(try await response.body.collect() == text)
    #expect(origin.requests.first?.fields[.acceptEncoding]?.contains("gzip") == true)
    await origin.stop()
  }
  #endif
}

extension SessionDownloader {
  /// A downloader whose idle timeout does not end on a busy machine.
  static func patient() -> SessionDownloader {
    var configuration = Configuration()
    configuration.idleTimeout = .seconds(3_600)
    return SessionDownloader(configuration: configuration)
  }
}
