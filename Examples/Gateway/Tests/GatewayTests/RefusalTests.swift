import Foundation
import HTTPTypes
import LoopbackOrigin
import NIOCore
import Testing

@testable import GatewayServer

@Suite("Requests that the gateway refuses")
struct RefusalTests {
  @Test(
    "an invalid request gets its status, does not reach the origin, and closes the connection",
    arguments: [
      ("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400),
      ("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
      ("POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501),
      ("GET /a HTTP/1.1\r\nHost: h\r\nA: b\rc\r\n\r\n", 400),
      ("GET /a HTTP/1.1\r\nHost: h\r\nA: b\r\n c\r\n\r\n", 400),
      ("GET /a HTTP/1.1\r\nHost: a/b\r\n\r\n", 400),
      ("GET /a HTTP/1.1\r\n\r\n", 400),
      ("CONNECT h:443 HTTP/1.1\r\nHost: h:443\r\n\r\n", 501),
      ("GET /a HTTP/3.0\r\nHost: h\r\n\r\n", 505),
      ("GET /a HTTP/1.1\r\nHost: h\r\n" + String(repeating: "A: b\r\n", count: 1000) + "\r\n", 431),
      ("GET /" + String(repeating: "a", count: 20_000) + " HTTP/1.1\r\nHost: h\r\n\r\n", 414),
    ])
  func refused(text: String, status: Int) async throws {
    try await GatewayFixture.run { gateway, origin in
      let client = try await gateway.client()
      try await client.send(text + "GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n")
      let answer = try await client.answer()
      #expect(answer.status == status)
      #expect(answer["connection"] == "close")
      #expect(answer.body.hasPrefix("\(status) "))
      try await client.closeOutput()
      #expect(await client.untilClosed().isEmpty)
      #expect(origin.requests.isEmpty)
      #expect(try await gateway.isAlive(origin))
    }
  }

  @Test("a header section of 10 MB is refused before all of it has arrived")
  func hugeHeader() async throws {
    try await GatewayFixture.run { gateway, origin in
      let client = try await gateway.client()
      var bytes = ByteBuffer(string: "GET /a HTTP/1.1\r\nHost: h\r\nA: ")
      bytes.writeRepeatingByte(UInt8(ascii: "b"), count: 10 << 20)
      client.sendWithoutWaiting(bytes)
      let answer = try await client.answer()
      #expect(answer.status == 431)
      client.close()
      #expect(try await gateway.isAlive(origin))
    }
  }

  @Test("garbage gets a 400, and the gateway continues to serve")
  func garbage() async throws {
    try await GatewayFixture.run { gateway, origin in
      for text in ["\u{16}\u{3}\u{1}\u{2}\n\n", "\r\n\r\n\n", "GET\r\n\r\n", "\u{0}\r\n\r\n"] {
        let client = try await gateway.client()
        try await client.send(text)
        try await client.closeOutput()
        let answer = await client.untilClosed()
        #expect(answer.hasPrefix("HTTP/1.1 400 Bad Request\r\n"))
      }
      #expect(try await gateway.isAlive(origin))
    }
  }

  @Test("an invalid body after a valid head is a 400 to the client and a broken request to the origin")
  func brokenBody() async throws {
    try await GatewayFixture.run { gateway, origin in
      let client = try await gateway.client()
      try await client.send("POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
      await origin.waitForRequestBody(path: "/a", bytes: 3)
      try await client.send("zz\r\n")
      let answer = try await client.answer()
      #expect(answer.status == 400)
      #expect(answer["connection"] == "close")
      client.close()
      // The origin has received no complete request.
      await origin.waitForOpenConnections()
      #expect(origin.requests.isEmpty)
      #expect(try await gateway.isAlive(origin))
    }
  }

  @Test("a client that leaves before the end of its body cancels its request")
  func leavesInMidBody() async throws {
    try await GatewayFixture.run { gateway, origin in
      let client = try await gateway.client()
      try await client.send("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc")
      await origin.waitForRequestBody(path: "/a", bytes: 3)
      client.close()
      await origin.waitForOpenConnections()
      #expect(origin.requests.isEmpty)
      #expect(try await gateway.isAlive(origin))
    }
  }

  @Test("Upgrade is ignored, and the following requests are served (RFC 9110 §7.8)")
  func upgrade() async throws {
    try await GatewayFixture.run { gateway, origin in
      origin.setRoute("/a", Route(OriginResponse(text: "a")))
      let client = try await gateway.client()
      for _ in 0..<2 {
        try await client.send(
          "GET /a HTTP/1.1\r\nHost: h\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n")
        #expect(try await client.answer().body == "a")
      }
      #expect(origin.requests.allSatisfy { $0.fields[.upgrade] == nil && $0.fields[.connection] == nil })
    }
  }
}
