import CacheTesting
import Foundation
import HTTPServing
import HTTPTypes
import LoopbackOrigin
import NIOCore
import Testing

@testable import GatewayServer

@Suite("The gateway's client connections")
struct ConnectionTests {
  @Test("pipelined requests get their responses in order, even if the client has closed its side")
  func pipelining() async throws {
    try await GatewayFixture.run { gateway, origin in
      origin.setFallback { OriginResponse(text: $0.path) }
      let client = try await gateway.client()
      try await client.send((0..<20).map { "GET /\($0) HTTP/1.1\r\nHost: h\r\n\r\n" }.joined())
      try await client.closeOutput()
      for number in 0..<20 { #expect(try await client.answer().body == "/\(number)") }
      #expect(await client.untilClosed().isEmpty)
    }
  }

  @Test("after Connection: close from the client, the response repeats it and the connection closes")
  func close() async throws {
    try await GatewayFixture.run { gateway, origin in
      origin.setRoute("/a", Route(OriginResponse(text: "a")))
      let client = try await gateway.client()
      try await client.send("GET /a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
      #expect(await client.untilClosed().contains("\r\nConnection: close\r\n\r\na"))
    }
  }

  @Test("the rest of an unwanted body is dropped, and the next request is served")
  func unwantedBody() async throws {
    try await GatewayFixture.run { gateway, origin in
      origin.setRoute("/a", Route(OriginResponse(text: "a")))
      let client = try await gateway.client()
      try await client.send("TRACE /x HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n")
      #expect(try await client.answer().status == 400)
      var rest = ByteBuffer(repeating: UInt8(ascii: "x"), count: 100_000)
      rest.writeString("GET /a HTTP/1.1\r\nHost: h\r\n\r\n")
      try await client.send(rest)
      #expect(try await client.answer().body == "a")
    }
  }

  @Test("an unwanted body that is too long closes the connection after the response")
  func unwantedLongBody() async throws {
    try await GatewayFixture.run { gateway, origin in
      let client = try await gateway.client()
      try await client.send("TRACE /x HTTP/1.1\r\nHost: h\r\nContent-Length: 100000000\r\n\r\n")
      client.sendWithoutWaiting(ByteBuffer(repeating: UInt8(ascii: "x"), count: 10_000_000))
      #expect(try await client.answer().status == 400)
      #expect(await client.untilClosed().isEmpty)
      client.close()
      #expect(try await gateway.isAlive(origin))
    }
  }

  @Test("a graceful shutdown completes the running requests with Connection: close, and accepts no new connection")
  func shutdown() async throws {
    let gate = Gate()
    // The port stays reserved after the gateway's end. Otherwise another test's server could get it and accept the last
    // connection.
    let port = try ReservedPort()
    try await GatewayFixture.run {
      $0.listen = HostAndPort(host: "127.0.0.1", port: port.number)
    } _: { gateway, origin in
      origin.setRoute("/slow", Route(OriginResponse(text: "slow", delivery: .gated(by: gate))))
      let (idle, busy) = (try await gateway.client(), try await gateway.client())
      #expect(try await gateway.isAlive(origin))
      try await busy.send("GET /slow HTTP/1.1\r\nHost: h\r\n\r\n")
      await gate.arrived()
      await gateway.shutDown()
      #expect(await idle.untilClosed().isEmpty)
      gate.open()
      let answer = try await busy.answer()
      #expect(answer.body == "slow")
      #expect(answer["connection"] == "close")
      #expect(await busy.untilClosed().isEmpty)
      await #expect(throws: (any Error).self) { try await gateway.client() }
    }
    withExtendedLifetime(port) {}
  }

  @Test("a connection above the limit waits until another one closes")
  func limit() async throws {
    try await GatewayFixture.run {
      $0.maximumConnections = 1
    } _: { gateway, origin in
      origin.setRoute("/a", Route(OriginResponse(text: "a")))
      let first = try await gateway.client()
      try await first.send("GET /a HTTP/1.1\r\nHost: h\r\n\r\n")
      #expect(try await first.answer().body == "a")
      let second = try await gateway.client()
      try await second.send("GET /a HTTP/1.1\r\nHost: h\r\n\r\n")
      try await first.send("GET /a HTTP/1.1\r\nHost: h\r\n\r\n")
      #expect(try await first.answer().body == "a")
      #expect(origin.requests.count == 2)
      first.close()
      #expect(try await second.answer().body == "a")
    }
  }
}
