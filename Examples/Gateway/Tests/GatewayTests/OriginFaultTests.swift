import CacheCore
import Foundation
import HTTPServing
import HTTPTypes
import LoopbackOrigin
import NIOCore
import Testing

@testable import GatewayServer

@Suite("The gateway with a failing origin")
struct OriginFaultTests {
  @Test("a refused connection is a 502 with the reason, and with the error code in Cache-Status")
  func refused() async throws {
    // The port of a stopped origin would not do, because another server may get it.
    try await GatewayFixture.run(inFrontOf: 1) { gateway in
      let answer = try await gateway.get("/a")
      #expect(answer.statusLine == "HTTP/1.1 502 Bad Gateway")
      #expect(answer.body == "502 Bad Gateway: connection refused\n")
      #expect(answer["cache-status"] == "Etagere; detail=connectionRefused")
      #expect(answer["date"] != nil)
    }
  }

  @Test(
    "an origin that closes, resets or sends garbage before the head is a 502",
    arguments: [OriginFault.closeBeforeHead, .closeMidHead, .resetBeforeHead, .garbage])
  func beforeHead(fault: OriginFault) async throws {
    try await GatewayFixture.run { gateway, origin in
      origin.setRoute("/a", .fault(fault))
      let answer = try await gateway.get("/a")
      #expect(answer.status == 502)
      #expect(answer["cache-status"]?.hasPrefix("Etagere; detail=") == true)
      #expect(try await gateway.isAlive(origin))
    }
  }

  @Test(
    "an idempotent request without a body is sent again over another connection, if the origin has closed the reused one",
    arguments: ["GET", "HEAD", "OPTIONS", "DELETE"])
  func closedConnection(_ method: String) async throws {
    let origin = try await RawOrigin.start(answer: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", limit: 1)
    try await GatewayFixture.run(inFrontOf: origin.port) { gateway in
      for _ in 0..<3 {
        let answer = try await gateway.ask(method, "/a")
        #expect(answer.status == 200)
      }
    }
    // Each response needs a new connection, because an origin's connection responds once.
    #expect(origin.connections == 3)
    await origin.stop()
  }

  @Test("a request that is not idempotent or has a body is sent once", arguments: [("POST", nil), ("PATCH", nil), ("PUT", "a")])
  func sentOnce(_ method: String, _ body: String?) async throws {
    let origin = try await RawOrigin.start(answer: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", limit: 1)
    try await GatewayFixture.run(inFrontOf: origin.port) { gateway in
      for path in ["/1", "/2", "/3", "/4"] { _ = try await gateway.ask(method, path, body: body) }
    }
    #expect(origin.heads.count == 4)
    await origin.stop()
  }

  /// A responder with a body that fails at once.
  private struct FailingBody: Responder {
    let code: CacheError.Code

    final class Source: ResourceBody.Source {
      let error: CacheError

      init(_ error: CacheError) { self.error = error }

      func next() async throws(CacheError) -> Data? { throw error }
      func cancel() {}
      var trailers: HTTPFields? { nil }
    }

    func respond(to request: ServerRequest) async throws(CacheError) -> ProxyAnswer {
      let source = Source(CacheError(code, reason: "invalid chunk"))
      return ProxyAnswer(head: HTTPResponse(status: .ok), body: ResourceBody(length: nil, source: source), outcome: .miss)
    }
  }

  @Test(
    "a body that fails before the head was sent is a 502 or 504 with the reason, and is counted once",
    arguments: [(CacheError.Code.malformedResponse, 502), (.truncatedBody, 502), (.timedOut, 504)])
  func failingBody(_ code: CacheError.Code, _ status: Int) async throws {
    let traffic = Traffic()
    let responder = RecordingResponder(next: FailingBody(code: code), traffic: traffic, clock: SystemClock())
    let head = HTTPRequest(method: .get, scheme: "http", authority: "h", path: "/")
    let response = await responder.respond(
      to: ServerRequest(head: head, body: nil, peer: nil, target: "/", isHTTP10: false))
    let instead = try #require(response.onFailure?(CacheError(code, reason: "invalid chunk")))
    #expect(instead.head.status.code == status)
    #expect(instead.body.data == Data("\(status) \(instead.head.status.phrase): invalid chunk\n".utf8))
    instead.onEnd?(ServerResponse.Delivery(isComplete: true))
    #expect(traffic.total.requests == 1 && traffic.total.failures == 1 && traffic.total.aborted == 0)
  }

  @Test("a silent origin is a 504 after the time-out")
  func silent() async throws {
    try await GatewayFixture.run {
      $0.originTimeout = .milliseconds(50)
    } _: { gateway, origin in
      origin.setRoute("/a", .fault(.stallBeforeHead))
      let answer = try await gateway.get("/a")
      #expect(answer.statusLine == "HTTP/1.1 504 Gateway Timeout")
      #expect(answer["cache-status"] == "Etagere; detail=timedOut")
    }
  }

  @Test(
    "an invalid response is a 502 with the reason",
    arguments: [
      ("HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n", "304 to a request without a condition"),
      (
        "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-0/9\r\nContent-Length: 1\r\n\r\na",
        "206 to a request without a range"
      ),
      ("HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n", "interim"),
      ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", "not HTTP"),
      ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n", "not HTTP"),
      ("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "not HTTP"),
      ("HTTP/1.1 200 OK\r\nBad Name: x\r\nContent-Length: 0\r\n\r\n", "not HTTP"),
      ("HTTP/1.1 200 OK\r\nA: b\rc\r\nContent-Length: 0\r\n\r\n", "not HTTP"),
      ("HTTP/1.1 200 OK\r\n" + String(repeating: "A: b\r\n", count: 2000) + "\r\n", "too large"),
      ("HTTP/1.1 200 OK\r\nA: " + String(repeating: "a", count: 10 << 20) + "\r\n\r\n", "too large"),
    ])
  func nonsense(bytes: String, reason: String) async throws {
    let origin = try await RawOrigin.start(answer: bytes, closes: true)
    try await GatewayFixture.run(inFrontOf: origin.port) { gateway in
      for _ in 0..<2 {
        let answer = try await gateway.get("/a")
        #expect(answer.status == 502)
        #expect(answer.body.contains(reason))
      }
    }
    await origin.stop()
  }

  @Test("a 304 to the client's condition and a 206 to the client's range are forwarded")
  func asked() async throws {
    try await GatewayFixture.run { gateway, origin in
      origin.setRoute("/a", Route(OriginResponse(Data("0123".utf8), etag: "v", acceptsRanges: true)))
      #expect(try await gateway.get("/a", "If-None-Match: \"v\"").status == 304)
      let part = try await gateway.get("/a", "Range: bytes=1-2")
      #expect(part.status == 206)
      #expect(part.body == "12")
    }
  }

  @Test("a body after a 204 is dropped, and its connection is closed")
  func bodyAfter204() async throws {
    try await GatewayFixture.run { gateway, origin in
      origin.setRoute(
        "/a",
        Route(handler: { _ in
          OriginResponse(
            delivery: .fault(.raw(Data("HTTP/1.1 204 No Content\r\nContent-Length: 4\r\n\r\nbody".utf8), thenCloses: false)))
        }))
      for _ in 0..<3 {
        let answer = try await gateway.get("/a")
        #expect(answer.status == 204)
        #expect(answer["content-length"] == nil)
        #expect(try await gateway.isAlive(origin))
      }
    }
  }

  @Test("bytes after the end of a response reach no client")
  func surplus() async throws {
    let surplus = Data("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison".utf8)
    try await GatewayFixture.run { gateway, origin in
      origin.setRoute("/a", .fault(.surplus(surplus)))
      for _ in 0..<3 {
        let answer = try await gateway.get("/a")
        #expect(answer.status == 200)
        #expect(try await gateway.isAlive(origin))
      }
    }
  }

  @Test(
    "a truncated body is truncated for the client too, without a regular end",
    arguments: [true, false], [OriginFault.cut(afterBodyBytes: 5), .reset(afterBodyBytes: 5)])
  func brokenBody(isChunked: Bool, fault: OriginFault) async throws {
    try await GatewayFixture.run { gateway, origin in
      let delivery = OriginDelivery(framing: isChunked ? .chunked(of: 5) : .contentLength, fault: fault)
      origin.setRoute("/a", Route(OriginResponse(Data("0123456789".utf8), delivery: delivery)))
      let client = try await gateway.client()
      try await client.send("GET /a HTTP/1.1\r\nHost: h\r\n\r\n")
      let text = await client.untilClosed()
      #expect(!text.contains("56789"))
      #expect(!text.hasSuffix("0\r\n\r\n"))
      #expect(try await gateway.isAlive(origin))
    }
  }

  @Test("an HTTP/1.0 client gets a reset after a truncated body, because a close would look like a regular end")
  func brokenBody10() async throws {
    try await GatewayFixture.run { gateway, origin in
      let delivery = OriginDelivery(framing: .chunked(of: 5), fault: .cut(afterBodyBytes: 5))
      origin.setRoute("/a", Route(OriginResponse(Data("0123456789".utf8), delivery: delivery)))
      let client = try await gateway.client()
      try await client.send("GET /a HTTP/1.0\r\n\r\n")
      _ = await client.untilClosed()
      #expect(client.wasReset)
    }
  }

  @Test("an endless response streams to the client, and the origin's connection closes when the client leaves")
  func endless() async throws {
    try await GatewayFixture.run {
      $0.halfClosedTime = .milliseconds(20)
    } _: { gateway, origin in
      origin.setRoute(
        "/a",
        Route(
          OriginResponse(
            Data("0123456789".utf8), delivery: OriginDelivery(framing: .chunked(of: 5), fault: .stall(afterBodyBytes: 5)))))
      let client = try await gateway.client()
      try await client.send("GET /a HTTP/1.1\r\nHost: h\r\n\r\n")
      #expect(await client.until("01234").contains("01234"))
      client.close()
      await origin.waitForOpenConnections()
      #expect(try await gateway.isAlive(origin))
    }
  }
}
