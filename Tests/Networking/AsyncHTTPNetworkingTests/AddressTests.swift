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

@Suite("Addresses and async-http-client", .timeLimit(.minutes(30)))
struct AddressTests {
  @Test(
    "refused addresses, and names that resolve to them, are refused before a connection is made",
    arguments: ["127.0.0.1", "localhost", "[::1]", "169.254.169.254", "127.1", "0x7f000001"])
  func refused(host: String) async throws {
    try await Fixture.run(.init { $0.addressPolicy = .publicOnly }) { fixture in
      let head = HTTPRequest(method: .get, scheme: "http", authority: "\(host):\(fixture.origin.port)", path: "/")
      let error = await fixture.failure(of: DownloadRequest(head: head))
      #expect(error?.code == .addressRefused)
      #expect(fixture.origin.counters.connectionsAccepted == 0)
    }
  }

  @Test("an excepted address is allowed, also by name")
  func excepted() async throws {
    let own = try #require(IPAddress("127.0.0.1"))
    try await Fixture.run(.init { $0.addressPolicy = AddressPolicy(refusing: .all, except: [own]) }) { fixture in
      fixture.origin.setRoute("/", Route(Data("own".utf8)))
      let body = try await fixture.get("/").body.collect()
      #expect(body == Data("own".utf8))
    }
  }

  @Test("a name that resolves to another address for the connection is refused before a byte of HTTP is sent")
  func rebound() async throws {
    // The name check is omitted, as if it had received another address than the connection.
    let configuration = AsyncHTTPDownloader.Configuration { $0.addressPolicy = .publicOnly }
    let client = HTTPClient(
      eventLoopGroup: configuration.eventLoopGroup, configuration: try configuration.client(counting: ConnectionCount()))
    try await Fixture.run(AsyncHTTPDownloader(client: client)) { fixture in
      for _ in 0..<3 {
        let error = await fixture.failure(of: try fixture.request("/"))
        #expect(error?.code == .addressRefused)
      }
      // The system accepts the connections before the origin sees them.
      try await Polling.until { fixture.origin.counters.connectionsAccepted > 0 }
      await fixture.origin.waitForOpenConnections()
      #expect(fixture.origin.counters.bytesReceived == 0)
    }
    try await client.shutdown()
  }

  @Test("a name lookup ends at its time limit, and at once if its task is cancelled")
  func lookUpLimit() async throws {
    let threads = NIOThreadPool(numberOfThreads: 1)
    threads.start()
    let check = NameCheck(.publicOnly, on: threads)
    let loop = MultiThreadedEventLoopGroup.singleton.any()
    // The only thread is busy, as if it waited for a silent name server.
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

  @Test("a name that does not resolve is reported")
  func unresolved() async throws {
    let configuration = AsyncHTTPDownloader.Configuration {
      $0.addressPolicy = .publicOnly
      // Longer than a resolver waits for a silent name server.
      $0.connectTimeout = .seconds(600)
    }
    try await Fixture.run(configuration) { fixture in
      let head = HTTPRequest(method: .get, scheme: "http", authority: "name.invalid", path: "/")
      #expect(await fixture.failure(of: DownloadRequest(head: head, idleTimeout: .seconds(600)))?.code == .hostNotFound)
    }
  }
}
#endif
