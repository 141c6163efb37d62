#if AsyncHTTP && Origin
import AsyncHTTPNetworking
import CacheCore
import CacheTesting
import Foundation
import HTTPTypes
import LoopbackOrigin
import ServiceLifecycle
import ServiceLifecycleTestKit
import Testing

@Suite("A downloader on async-http-client as a service", .timeLimit(.minutes(30)))
struct ServiceTests {
  @Test("running transfers complete when the service group shuts down, and later downloads fail")
  func graceful() async throws {
    let origin = try await OriginServer.start()
    let gate = Gate()
    let body = pattern(200_000)
    origin.setRoute("/body", Route(body, delivery: OriginDelivery(bodyGate: gate, bodyGateOffset: 1_000)))
    origin.setRoute("/a", Route(Data("a".utf8)))
    let downloader = try Fixture.downloader()
    let later = DownloadRequest(head: try .init(resource: origin.url("/a")))

    try await testGracefulShutdown { trigger in
      let ended = Lock(false)
      let running = Task {
        try await (downloader as any Service).run()
        ended.withLock { $0 = true }
      }
      let response = try await downloader.download(DownloadRequest(head: try .init(resource: origin.url("/body"))))
      #expect(await failure(downloader, later) == nil)

      trigger.triggerGracefulShutdown()
      // Its task closes the downloader soon. Until then downloads are accepted.
      var code: CacheError.Code?
      try await Polling.until {
        code = await failure(downloader, later)?.code
        return code != nil
      }
      #expect(code == .closed)
      #expect(!ended.withLock { $0 }, "a transfer still runs")

      gate.open()
      #expect(try await response.body.collect() == body)
      try await running.value
    }

    #expect(await failure(downloader, later)?.code == .closed)
    await origin.waitForOpenConnections()
    await origin.stop()
  }

  @Test("cancelling the service's task ends the running transfers that it waits for")
  func cancelled() async throws {
    let origin = try await OriginServer.start()
    let gate = Gate()
    origin.setRoute("/body", Route(pattern(200_000), delivery: OriginDelivery(bodyGate: gate, bodyGateOffset: 1_000)))
    let downloader = try Fixture.downloader()
    try await testGracefulShutdown { trigger in
      let running = Task { try await (downloader as any Service).run() }
      let response = try await downloader.download(DownloadRequest(head: try .init(resource: origin.url("/body"))))
      trigger.triggerGracefulShutdown()
      running.cancel()
      try await running.value
      await #expect(throws: CacheError.self) { _ = try await response.body.collect() }
    }
    gate.open()
    await origin.waitForOpenConnections()
    await origin.stop()
  }
}
#endif
