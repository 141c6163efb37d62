import CacheTesting
import Foundation
import HTTPTypes
import LoopbackOrigin
import NIOCore
import Testing

@testable import GatewayServer

@Suite("Streaming through the gateway")
struct StreamingTests {
  @Test("an upload streams to the origin, with its length or in chunks", arguments: [true, false])
  func upload(hasLength: Bool) async throws {
    try await GatewayFixture.run { gateway, origin in
      origin.setRoute("/a", Route(handler: { OriginResponse(text: "\($0.method) \($0.bodyLength)") }))
      let client = try await gateway.client()
      let framing = hasLength ? "Content-Length: 10" : "Transfer-Encoding: chunked"
      try await client.send("PUT /a HTTP/1.1\r\nHost: h\r\n\(framing)\r\n\r\n" + (hasLength ? "01234" : "5\r\n01234\r\n"))
      await origin.waitForRequestBody(path: "/a", bytes: 5)
      try await client.send(hasLength ? "56789" : "5\r\n56789\r\n0\r\n\r\n")
      #expect(try await client.answer().body == "PUT 10")
      let request = try #require(origin.requests.first)
      #expect(request.body == Data("0123456789".utf8))
      #expect(request.fields[.contentLength] == (hasLength ? "10" : nil))
      #expect(request.fields[.transferEncoding] == (hasLength ? nil : "chunked"))
    }
  }

  @Test("a response streams to the client")
  func download() async throws {
    let gate = Gate()
    try await GatewayFixture.run { gateway, origin in
      let delivery = OriginDelivery(bodyGate: gate, bodyGateOffset: 5)
      origin.setRoute("/a", Route(OriginResponse(Data("0123456789".utf8), delivery: delivery)))
      let client = try await gateway.client()
      try await client.send("GET /a HTTP/1.1\r\nHost: h\r\n\r\n")
      #expect(await client.until("01234").hasSuffix("\r\n\r\n01234"))
      gate.open()
      #expect(try await client.answer().body == "0123456789")
    }
  }

  @Test("a head is sent before its body arrives")
  func headFirst() async throws {
    let gate = Gate()
    try await GatewayFixture.run { gateway, origin in
      origin.setRoute("/a", Route(OriginResponse(Data("0123".utf8), delivery: OriginDelivery(bodyGate: gate))))
      let client = try await gateway.client()
      try await client.send("GET /a HTTP/1.1\r\nHost: h\r\n\r\n")
      #expect(await client.until("\r\n\r\n").hasPrefix("HTTP/1.1 200 OK\r\n"))
      gate.open()
      #expect(try await client.answer().body == "0123")
    }
  }

  /// A body that is more than twice as large as the buffers of the gateway and of its two connections.
  private static let largeBody = 4 * SocketBuffers.limit + (16 << 20)

  @Test("a client that stops reading slows the origin down, and gets every byte later")
  func backPressure() async throws {
    let size = Self.largeBody
    let body = Data(repeating: UInt8(ascii: "x"), count: size)
    try await GatewayFixture.run { gateway, origin in
      origin.setRoute("/big", Route(body, contentType: "application/octet-stream"))
      let slow = try await gateway.client(reads: false)
      try await slow.send("GET /big HTTP/1.1\r\nHost: h\r\n\r\n")
      await origin.waitForRequests(path: "/big")
      // Responses to other clients take enough time for the origin to fill all buffers.
      for _ in 0..<200 { #expect(try await gateway.isAlive(origin)) }
      #expect(origin.counters(for: "/big").bodyBytesSent < size / 2)
      try await slow.startReading()
      #expect(await slow.until(bytes: size) >= size)
      slow.close()
    }
  }

  @Test("an origin that stops reading slows the client down")
  func uploadBackPressure() async throws {
    let origin = try await SilentOrigin.start()
    try await GatewayFixture.run(inFrontOf: origin.port) {
      $0.originTimeout = .seconds(600)
    } _: { gateway in
      let client = try await gateway.client()
      let size = Self.largeBody
      let sent = WatchedState(0)
      try await client.send("PUT /a HTTP/1.1\r\nHost: h\r\nContent-Length: \(size)\r\n\r\n")
      let piece = ByteBuffer(repeating: 0, count: 1 << 20)
      let sending = Task {
        for _ in 0..<(size >> 20) {
          try await client.send(piece)
          sent.update { $0 += 1 << 20 }
        }
      }
      await origin.waitForConnection()
      for _ in 0..<200 { _ = try await gateway.ask("OPTIONS", "*") }
      #expect(sent.read { $0 } < size / 2)
      client.close()
      _ = await sending.result
      await origin.stop()
    }
  }

  @Test("a pipelined request waits until the response to the first one was sent")
  func pipeliningBackPressure() async throws {
    let gate = Gate()
    try await GatewayFixture.run { gateway, origin in
      origin.setRoute("/slow", Route(OriginResponse(text: "slow", delivery: .gated(by: gate))))
      origin.setRoute("/next", Route(handler: { OriginResponse(text: "got \($0.bodyLength)") }))
      let client = try await gateway.client()
      // More bytes than the buffers of the connection and the gateway.
      let size = SocketBuffers.limit + (16 << 20)
      let sent = WatchedState(0)
      try await client.send("GET /slow HTTP/1.1\r\nHost: h\r\n\r\n")
      await gate.arrived()
      let piece = ByteBuffer(repeating: 0, count: 1 << 20)
      let sending = Task {
        try await client.send("PUT /next HTTP/1.1\r\nHost: h\r\nContent-Length: \(size)\r\n\r\n")
        for _ in 0..<(size >> 20) {
          try await client.send(piece)
          sent.update { $0 += 1 << 20 }
        }
      }
      for _ in 0..<200 { _ = try await gateway.ask("OPTIONS", "*") }
      #expect(sent.read { $0 } < size)
      gate.open()
      #expect(try await client.answer().body == "slow")
      #expect(try await client.answer().body == "got \(size)")
      try await sending.value
      client.close()
    }
  }

  @Test("a client gets 100 Continue only when its body is wanted (RFC 9110 §10.1.1)")
  func expectContinue() async throws {
    try await GatewayFixture.run { gateway, origin in
      origin.setRoute("/a", Route(handler: { OriginResponse(text: "got \($0.bodyLength)") }))
      let client = try await gateway.client()
      try await client.send("PUT /a HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n")
      #expect(try await client.answer().statusLine == "HTTP/1.1 100 Continue")
      try await client.send("0123")
      #expect(try await client.answer().body == "got 4")
      #expect(origin.requests.first?.fields[.expect] == nil)
      // The body of a refused request is not wanted, so the connection closes.
      try await client.send("TRACE /a HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n")
      let refusal = try await client.answer()
      #expect(refusal.status == 400)
      #expect(refusal["connection"] == "close")
      client.close()
    }
  }

  @Test("a response that arrives before the end of the request's body is forwarded at once")
  func earlyAnswer() async throws {
    let origin = try await RawOrigin.start(answer: "HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nbig")
    try await GatewayFixture.run(inFrontOf: origin.port) { gateway in
      let client = try await gateway.client()
      try await client.send("PUT /a HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\nabc")
      let answer = try await client.answer()
      #expect(answer.status == 413)
      #expect(answer.body == "big")
      client.close()
    }
    await origin.stop()
  }
}
