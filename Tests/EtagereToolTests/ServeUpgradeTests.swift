#if Tool && Service
import Foundation
import NIOCore
import NIOPosix
import Testing

@Suite("etagere serve: requests for another protocol", .timeLimit(.minutes(10)))
struct ServeUpgradeTests {
  // The server cannot read a second request on the connection.
  @Test("a response to a request with Upgrade announces the end of the connection", arguments: ["healthz", "nowhere", "img/a"])
  func upgrade(path: String) async throws {
    let service = try await RunningService()
    let port = try #require(service.address.split(separator: ":").last.flatMap { Int($0) })
    for (fields, isLast) in [("", false), ("Connection: Upgrade\r\nUpgrade: h2c\r\n", true)] {
      let head = try await Self.head(of: "GET /\(path) HTTP/1.1\r\nHost: a\r\n\(fields)\r\n", port).lowercased()
      #expect(head.hasPrefix("http/1.1 "))
      #expect(head.contains("\r\nconnection: close\r\n") == isLast, "\(head)")
    }
    #expect(try await service.stop() == 0)
  }

  /// Sends a request on a connection of its own, and returns the head of the response.
  private static func head(of request: String, _ port: Int) async throws -> String {
    let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .connect(host: "127.0.0.1", port: port) { channel in
        channel.eventLoop.makeCompletedFuture {
          try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
        }
      }
    return try await channel.executeThenClose { inbound, outbound in
      try await outbound.write(ByteBuffer(string: request))
      var received = ""
      for try await bytes in inbound {
        received += String(buffer: bytes)
        if let end = received.range(of: "\r\n\r\n") { return String(received[..<end.upperBound]) }
      }
      return received
    }
  }
}
#endif
