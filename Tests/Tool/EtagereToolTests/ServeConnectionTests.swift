#if Tool && Service
import CacheTesting
import Foundation
import HTTPTypes
import NIOCore
import NIOPosix
import Testing

@Suite("etagere-cli serve: connections", .timeLimit(.minutes(30)))
struct ServeConnectionTests {
  @Test("a request for another protocol gets a response, and the connection stays open for the next request")
  func upgrade() async throws {
    let service = try await RunningService()
    for path in ["healthz", "nowhere", "img/a"] {
      let request = "GET /\(path) HTTP/1.1\r\nHost: a\r\n"
      let received = try await Self.exchange(
        request + "Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n" + request + "Connection: close\r\n\r\n", service)
      #expect(received.split(separator: "HTTP/1.1 ").count == 2, "\(received)")
    }
    #expect(try await service.stop() == 0)
  }

  @Test("a request that is not valid gets a response, and is in the log with its reason")
  func invalid() async throws {
    let service = try await RunningService()
    let received = try await Self.exchange("GET /healthz HTTP/1.1\r\n\r\n", service)
    #expect(received.hasPrefix("HTTP/1.1 400 Bad Request\r\n") && received.hasSuffix("\r\n\r\nHost is missing\n"))
    // At its end, the process writes the log for a second at most.
    try await Polling.until { try service.log.count >= 1 }
    #expect(try await service.stop() == 0)
    let log = try service.log
    #expect(log.count == 1 && log[0].contains(#""error":"badRequest: Host is missing""#), "\(log)")
    #expect(log[0].contains(#""client":"127.0.0.1""#) && log[0].contains(#""status":400"#))
  }

  @Test("a method that a path does not support gets 405, and HEAD gets no body")
  func methods() async throws {
    let service = try await RunningService("--admin", "127.0.0.1:0")
    let deleted = try await service.send(.delete, "http://\(service.address)/healthz")
    #expect(deleted.status == 405 && deleted.fields[.allow] == "GET, HEAD")
    let purged = try await service.get(service.metrics.replacing("/metrics", with: "/purge"))
    #expect(purged.status == 405 && purged.fields[.allow] == "POST")
    let head = try await service.send(.head, "http://\(service.address)/healthz?a")
    #expect(head.status == 200 && head.fields[.date] != nil && head.data.isEmpty)
    #expect(try await service.stop() == 0)
  }

  @Test("an address that cannot be opened ends the command with the address", arguments: ["--listen", "--admin"])
  func unusableAddress(option: String) async throws {
    let service = try await RunningService()
    let other = option == "--listen" ? [] : ["--listen", "127.0.0.1:0"]
    for (address, reason) in [(service.address, "Address already in use"), ("host.invalid:80", "unknown host")] {
      let run = try await service.fixture.run(
        [
          "serve", "--folder", "site=\(service.fixture.path)/images", "--keys-file", "\(service.fixture.path)/keys", option,
          address,
        ] + other)
      #expect(run.status == 69)
      #expect(run.errors.last == "etagere-cli: cannot listen on \(address): \(reason)", "\(run.errors)")
    }
    #expect(try await service.stop() == 0)
  }

  /// Sends bytes on a connection of its own, and returns all bytes until the server ends the connection.
  private static func exchange(_ bytes: String, _ service: RunningService) async throws -> String {
    let port = try #require(service.address.split(separator: ":").last.flatMap { Int($0) })
    let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .connect(host: "127.0.0.1", port: port) { channel in
        channel.eventLoop.makeCompletedFuture {
          try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
        }
      }
    return try await channel.executeThenClose { inbound, outbound in
      try await outbound.write(ByteBuffer(string: bytes))
      var received = ""
      for try await bytes in inbound { received += String(buffer: bytes) }
      return received
    }
  }
}
#endif
