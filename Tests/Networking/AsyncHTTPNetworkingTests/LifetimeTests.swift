#if AsyncHTTP && Origin
import AsyncHTTPClient
import AsyncHTTPNetworking
import CacheCore
import CacheTesting
import Foundation
import HTTPTypes
import LoopbackOrigin
import NIOCore
import NIOHTTP1
import NIOPosix
import ServiceLifecycle
import Testing

@Suite("Lifetime of a downloader on async-http-client", .timeLimit(.minutes(30)))
struct LifetimeTests {
  @Test("a closed downloader refuses downloads, and a second close does nothing")
  func closed() async throws {
    let origin = try await OriginServer.start()
    origin.setRoute("/a", Route(Data("a".utf8)))
    let downloader = try Fixture.downloader()
    let request = DownloadRequest(head: try .init(resource: origin.url("/a")))
    #expect(await failure(downloader, request) == nil)
    await downloader.close()
    await downloader.close()
    #expect(await failure(downloader, request)?.code == .closed)
    await origin.waitForOpenConnections()
    await origin.stop()
  }

  @Test("loads run on the process's shared event loops and not on a group that may end before them")
  func executor() async throws {
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    let downloader = AsyncHTTPDownloader()
    let elsewhere = try AsyncHTTPDownloader(configuration: .init { $0.eventLoopGroup = group })
    #expect(elsewhere.preferredExecutor == nil)
    let executor = try #require(downloader.preferredExecutor)
    await withTaskExecutorPreference(executor) {
      #expect(MultiThreadedEventLoopGroup.currentEventLoop != nil)
      // A task on a loop stays on it.
      #expect(downloader.preferredExecutor.map { ObjectIdentifier($0) } == ObjectIdentifier(executor))
    }
    await elsewhere.close()
    await downloader.close()
    try await group.shutdownGracefully()
  }

  @Test("a close ends transfers before the head and in the body, and requests that wait for a connection")
  func closedMidTransfer() async throws {
    let origin = try await OriginServer.start()
    let gate = Gate()
    origin.setRoute("/head", Route(Data("late".utf8), delivery: .gated(by: gate)))
    origin.setRoute("/body", Route(pattern(200_000), delivery: OriginDelivery(bodyGate: gate, bodyGateOffset: 1_000)))
    let downloader = try Fixture.downloader(.init { $0.connectionsPerHost = 2 })
    let response = try await downloader.download(DownloadRequest(head: try .init(resource: origin.url("/body"))))
    let waiting = try (0..<3).map { _ in
      let request = DownloadRequest(head: try .init(resource: origin.url("/head")))
      return Task { await failure(downloader, request) }
    }
    await gate.arrived(2)
    await downloader.close()
    for task in waiting { #expect(await task.value?.code == .closed) }
    await #expect(throws: CacheError.self) { _ = try await response.body.collect() }
    await origin.waitForOpenConnections()
    gate.open()
    await origin.stop()
  }

  @Test("a graceful close waits for the running transfers, and its cancellation ends them")
  func graceful() async throws {
    for isCancelled in [false, true] {
      let origin = try await OriginServer.start()
      let gate = Gate()
      let body = pattern(200_000)
      origin.setRoute("/body", Route(body, delivery: OriginDelivery(bodyGate: gate, bodyGateOffset: 1_000)))
      let downloader = try Fixture.downloader()
      let response = try await downloader.download(DownloadRequest(head: try .init(resource: origin.url("/body"))))
      let closing = Task { await downloader.close(finishingTransfers: true) }
      if isCancelled { closing.cancel() } else { gate.open() }
      if isCancelled {
        await #expect(throws: CacheError.self) { _ = try await response.body.collect() }
      } else {
        #expect(try await response.body.collect() == body)
      }
      await closing.value
      gate.open()
      await origin.stop()
    }
  }

  @Test("a released downloader completes its transfers and then closes its connections")
  func released() async throws {
    let origin = try await OriginServer.start()
    let gate = Gate()
    let body = pattern(200_000)
    origin.setRoute("/body", Route(body, delivery: OriginDelivery(bodyGate: gate, bodyGateOffset: 1_000)))
    var downloader: AsyncHTTPDownloader? = try Fixture.downloader()
    let response = try await downloader?.download(DownloadRequest(head: try .init(resource: origin.url("/body"))))
    downloader = nil
    gate.open()
    #expect(try await response?.body.collect() == body)
    await origin.waitForOpenConnections()
    await origin.stop()
  }

  @Test("a caller's client is used and not shut down")
  func injected() async throws {
    let client = HTTPClient(
      eventLoopGroup: MultiThreadedEventLoopGroup.singleton, configuration: .init(redirectConfiguration: .disallow))
    try await Fixture.run(AsyncHTTPDownloader(client: client)) { fixture in
      fixture.origin.setRoute("/a", Route(Data("a".utf8)))
      #expect(try await fixture.get("/a").body.collect() == Data("a".utf8))
      await fixture.downloader.close()
      let response = try await client.execute(.init(url: fixture.origin.url("/a").absoluteString), timeout: .seconds(60))
      #expect(response.status == .ok)
    }
    try await client.shutdown()
  }

  @Test("a caller's client that was shut down too early is reported, with or without a request body")
  func shutDownClient() async throws {
    let client = HTTPClient(eventLoopGroup: MultiThreadedEventLoopGroup.singleton)
    try await Fixture.run(AsyncHTTPDownloader(client: client)) { fixture in
      try await client.shutdown()
      for request in [try fixture.request("/a"), try fixture.request("/a", method: .post, body: ResourceBody(Data("body".utf8)))]
      {
        #expect(await fixture.failure(of: request)?.code == .closed)
      }
    }
  }

  @Test("a client that follows redirects is detected")
  func followingClient() async throws {
    let client = HTTPClient(eventLoopGroup: MultiThreadedEventLoopGroup.singleton)
    try await Fixture.run(AsyncHTTPDownloader(client: client)) { fixture in
      fixture.origin.setRoute("/a", .redirect(to: "/b"))
      fixture.origin.setRoute("/b", Route(Data("b".utf8)))
      let body = ResourceBody(Data("body".utf8))
      for request in [try fixture.request("/a"), try fixture.request("/a", method: .post, body: body)] {
        #expect(await fixture.failure(of: request)?.code == .invalidConfiguration)
      }
    }
    try await client.shutdown()
  }

  private struct InvalidNumber: Sendable {
    let setting: String
    let change: @Sendable (inout AsyncHTTPDownloader.Configuration) -> Void

    init(_ setting: String, _ change: @escaping @Sendable (inout AsyncHTTPDownloader.Configuration) -> Void) {
      (self.setting, self.change) = (setting, change)
    }
  }

  private static let invalidNumbers = [
    InvalidNumber("connectionsPerHost") { $0.connectionsPerHost = 0 },
    InvalidNumber("idleTimeout") { $0.idleTimeout = .zero },
    InvalidNumber("connectTimeout") { $0.connectTimeout = .seconds(-1) },
    InvalidNumber("connectionIdleTime") { $0.connectionIdleTime = .seconds(-1) },
    InvalidNumber("proxy.port") { $0.proxy = .init(host: "127.0.0.1", port: 70_000) },
    InvalidNumber("proxy.port") { $0.proxy = .init(host: "127.0.0.1", port: 0) },
  ]

  @Test("a number out of range is refused when the downloader is created", arguments: invalidNumbers.indices)
  func invalidNumber(_ index: Int) {
    let number = Self.invalidNumbers[index]
    let error = #expect(throws: CacheError.self) { try AsyncHTTPDownloader(configuration: .init { number.change(&$0) }) }
    #expect(error?.code == .invalidConfiguration)
    #expect(error?.reason.contains("'\(number.setting)'") == true)
  }

  @Test("a downloader with a caller's client and a number out of range fails each download")
  func invalidNumberWithClient() async throws {
    let client = HTTPClient(eventLoopGroup: MultiThreadedEventLoopGroup.singleton)
    let request = DownloadRequest(head: try .init(resource: #require(URL(string: "http://127.0.0.1:9/a"))))
    for downloader in [
      AsyncHTTPDownloader(client: client, connectionsPerHost: 0), AsyncHTTPDownloader(client: client, idleTimeout: .seconds(-1)),
    ] {
      #expect(await failure(downloader, request)?.code == .invalidConfiguration)
      await downloader.close()
    }
    try await client.shutdown()
  }

  @Test("a service ends when its task is cancelled")
  func service() async throws {
    let downloader = AsyncHTTPDownloader()
    let running = Task { try await (downloader as any Service).run() }
    running.cancel()
    try await running.value
    let request = DownloadRequest(head: try .init(resource: #require(URL(string: "http://127.0.0.1:9/"))))
    #expect(await failure(downloader, request)?.code == .closed)
  }
}
#endif
