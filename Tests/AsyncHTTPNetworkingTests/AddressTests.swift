#if AsyncHTTP && Origin
@testable import AsyncHTTPNetworking
import AsyncHTTPClient
import CacheCore
import CacheTesting
import Dispatch
import Foundation
import HTTPTypes
import LoopbackOrigin
import NIOCore
import NIOPosix
import Testing

@Suite("Where async-http-client may connect to", .timeLimit(.minutes(30)))
struct AddressTests {
  @Test(
    "addresses, and names that lead to them, are refused before anything is connected",
    arguments: ["127.0.0.1", "localhost", "[::1]", "169.254.169.254", "127.1", "0x7f000001"])
  func refused(host: String) async throws {
    try await Fixture.run(.init { $0.addressPolicy = .publicOnly }) { fixture in
      let head = HTTPRequest(method: .get, scheme: "http", authority: "\(host):\(fixture.origin.port)", path: "/")
      let error = await fixture.failure(of: DownloadRequest(head: head))
      #expect(error?.code == .addressRefused)
      #expect(fixture.origin.counters.connectionsAccepted == 0)
    }
  }

  @Test("an address that is excepted may be loaded from, by name too")
  func excepted() async throws {
    let own = try #require(IPAddress("127.0.0.1"))
    try await Fixture.run(.init { $0.addressPolicy = AddressPolicy(refusing: .all, except: [own]) }) { fixture in
      fixture.origin.setRoute("/", Route(Data("own".utf8)))
      let body = try await fixture.get("/").body.collect()
      #expect(body == Data("own".utf8))
    }
  }

  @Test("a name that leads elsewhere when the connection is made is refused then, before a byte of HTTP is sent")
  func rebound() async throws {
    // The check of names is left out, as if it had been told another address than the connection is.
    let configuration = AsyncHTTPDownloader.Configuration { $0.addressPolicy = .publicOnly }
    let client = HTTPClient(
      eventLoopGroup: configuration.eventLoopGroup, configuration: try configuration.client(counting: ConnectionCount()))
    try await Fixture.run(AsyncHTTPDownloader(client: client)) { fixture in
      for _ in 0..<3 {
        let error = await fixture.failure(of: try fixture.request("/"))
        #expect(error?.code == .addressRefused)
      }
      // The system has taken them before the origin sees them.
      try await Turns.until { fixture.origin.counters.connectionsAccepted > 0 }
      await fixture.origin.waitForOpenConnections()
      #expect(fixture.origin.counters.bytesReceived == 0)
    }
    try await client.shutdown()
  }

  @Test("looking a name up takes no longer than it may, and is given up by who is cancelled")
  func lookUpLimit() async throws {
    let threads = NIOThreadPool(numberOfThreads: 1)
    threads.start()
    let check = NameCheck(.publicOnly, on: threads)
    let loop = MultiThreadedEventLoopGroup.singleton.any()
    // The thread that could look it up is busy, as behind a name server that is silent.
    let gate = DispatchSemaphore(value: 0)
    threads.submit { _ in gate.wait() }
    await #expect { try await check.check("name.invalid", within: .milliseconds(50), on: loop) } throws: {
      ($0 as? CacheError)?.code == .timedOut
    }
    let waiting = Task { try await check.check("name.invalid", within: .seconds(3_600), on: loop) }
    waiting.cancel()
    await #expect { try await waiting.value } throws: { ($0 as? CacheError)?.isCancellation == true }
    gate.signal()
    try await threads.shutdownGracefully()
  }

  @Test("a name that does not resolve is told as such")
  func unresolved() async throws {
    let configuration = AsyncHTTPDownloader.Configuration {
      $0.addressPolicy = .publicOnly
      // More than a resolver waits for a name server that is silent.
      $0.connectTimeout = .seconds(600)
    }
    try await Fixture.run(configuration) { fixture in
      let head = HTTPRequest(method: .get, scheme: "http", authority: "name.invalid", path: "/")
      #expect(await fixture.failure(of: DownloadRequest(head: head, idleTimeout: .seconds(600)))?.code == .hostNotFound)
    }
  }
}
#endif
