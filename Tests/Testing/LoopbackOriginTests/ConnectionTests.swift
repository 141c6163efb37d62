#if Origin
import CacheTesting
import Foundation
import LoopbackOrigin
import Testing

@Suite("Connections", .timeLimit(.minutes(30)))
struct ConnectionTests {
  @Test("a connection serves many requests")
  func keepAlive() async throws {
    try await withOrigin { origin in
      origin.setRoute("/a", Route(pattern(100_000)))
      let client = try await origin.connect()

      for _ in 0..<20 { #expect(try await Data(client.get("/a").body) == pattern(100_000)) }

      #expect(origin.counters.connectionsAccepted == 1 && origin.counters.openConnections == 1)
    }
  }

  @Test("pipelined requests get responses in order, even if the first one is the slowest")
  func pipelining() async throws {
    try await withOrigin { origin in
      let gate = Gate()
      origin.setRoute("/0", Route(Data("0".utf8), delivery: .gated(by: gate)))
      origin.setFallback { OriginResponse(text: String($0.path.dropFirst())) }
      let client = try await origin.connect()

      try await client.send((0..<300).map { "GET /\($0) HTTP/1.1\r\nHost: a\r\n\r\n" }.joined())
      await gate.arrived()
      #expect(origin.counters.bytesSent == 0)
      gate.open()

      for number in 0..<300 { #expect(try await client.response().text == "\(number)") }
      #expect(origin.requests.map(\.path) == (0..<300).map { "/\($0)" })
      #expect(origin.requests.map(\.order) == Array(0..<300))
    }
  }

  @Test("a request that arrives in single bytes is read")
  func slowRequest() async throws {
    try await withOrigin { origin in
      origin.setRoute("/a", Route(Data("x".utf8)))
      let client = try await origin.connect()

      for byte in "GET /a HTTP/1.1\r\nHost: a\r\n\r\n".utf8 { try await client.send([byte]) }

      #expect(try await client.response().text == "x")
    }
  }

  @Test("a request body is read, with a length or in chunks")
  func requestBodies() async throws {
    try await withOrigin { origin in
      origin.setRoute("/a", Route { OriginResponse($0.body) })
      let client = try await origin.connect()
      let text = String(repeating: "0123456789", count: 10_000)

      #expect(try await client.request("POST", "/a", ["Content-Length: 100000"], body: text).text == text)
      let chunked = try await client.request(
        "POST", "/a", ["Transfer-Encoding: chunked"], body: "4\r\nwiki\r\n5\r\npedia\r\n0\r\n\r\n")
      #expect(chunked.text == "wikipedia")
      #expect(origin.requests.map(\.body.count) == [100_000, 9])
    }
  }

  @Test("a request body above the limit gets a 413, and the connection is closed")
  func tooLarge() async throws {
    try await withOrigin(requestBodyLimit: 10) { origin in
      origin.setRoute("/a", Route { OriginResponse($0.body) })
      let client = try await origin.connect()
      #expect(try await client.request("POST", "/a", ["Content-Length: 10"], body: "0123456789").text == "0123456789")

      let response = try await client.request("POST", "/a", ["Content-Length: 11"], body: "01234567890")

      #expect(response.status == 413 && response["Connection"] == "close")
      #expect(try await client.rest().end == .closed)
    }
  }

  @Test("a client that expects a 100 gets it before it sends its body")
  func expectContinue() async throws {
    try await withOrigin { origin in
      origin.setRoute("/a", Route { OriginResponse($0.body) })
      let client = try await origin.connect()

      try await client.send("POST /a HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
      #expect(try await client.head() == "HTTP/1.1 100 Continue\r\n\r\n")
      try await client.send("ok")

      #expect(try await client.response().text == "ok")
    }
  }

  @Test("invalid HTTP gets a 400, and the connection is closed")
  func badRequest() async throws {
    try await withOrigin { origin in
      let client = try await origin.connect()

      try await client.send("\u{1}\u{2} nonsense\r\n\r\n")

      let response = try await client.response()
      #expect(response.status == 400 && response["Connection"] == "close")
      #expect(try await client.rest().end == .closed)
      #expect(origin.counters.requests == 0 && origin.requests.isEmpty)
    }
  }

  @Test(
    "a connection persists according to the version and the Connection field",
    arguments: [
      ("HTTP/1.1", nil, false, nil), ("HTTP/1.1", "close", true, "close"), ("HTTP/1.0", nil, true, "close"),
      ("HTTP/1.0", "keep-alive", false, "keep-alive"),
    ] as [(String, String?, Bool, String?)])
  func persistence(version: String, field: String?, ends: Bool, connectionField: String?) async throws {
    try await withOrigin { origin in
      origin.setRoute("/a", Route(Data("x".utf8)))
      let client = try await origin.connect()
      let request = "GET /a \(version)\r\nHost: a\r\n\(field.map { "Connection: \($0)\r\n" } ?? "")\r\n"

      try await client.send(request)

      let response = try await client.response()
      #expect(response.text == "x" && response["Connection"] == connectionField)
      if ends {
        #expect(try await client.rest().end == .closed)
      } else {
        try await client.send(request)
        #expect(try await client.response().text == "x")
      }
    }
  }

  @Test("a response can announce and close its connection")
  func closesAfterwards() async throws {
    try await withOrigin { origin in
      origin.setRoute("/a", Route(Data("x".utf8), delivery: .init(closesAfterwards: true)))
      let client = try await origin.connect()

      #expect(try await client.get("/a")["Connection"] == "close")
      #expect(try await client.rest().end == .closed)
      await client.close()
      await origin.waitForOpenConnections()
      #expect(origin.counters.openConnections == 0)
    }
  }

  @Test("an HTTP/1.0 client gets no chunks")
  func noChunksForOldClients() async throws {
    try await withOrigin { origin in
      origin.setRoute("/a", Route(pattern(100), delivery: .chunked(of: 10)))
      let client = try await origin.connect()

      try await client.send("GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")

      let response = try await client.response()
      #expect(Data(response.body) == pattern(100) && response["Transfer-Encoding"] == nil && response["Connection"] == "close")
    }
  }

  @Test("a client that stops sending still gets the rest of its response")
  func halfClose() async throws {
    try await withOrigin { origin in
      origin.setRoute("/a", Route(pattern(3_000_000)))
      let client = try await origin.connect()

      try await client.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\n")
      await client.finishSending()

      let response = try await client.response()
      #expect(Data(response.body) == pattern(3_000_000))
      #expect(try await client.rest().end == .closed)
    }
  }

  @Test("many concurrent clients each get their own bytes")
  func manyClients() async throws {
    try await withOrigin { origin in
      origin.setFallback { OriginResponse(Data(repeating: UInt8($0.path.utf8.count), count: 50_000)) }
      try await withThrowingTaskGroup(of: Bool.self) { group in
        for length in 1...30 {
          group.addTask {
            let client = try await origin.connect()
            let response = try await client.get("/" + String(repeating: "x", count: length))
            return response.body == [UInt8](repeating: UInt8(length + 1), count: 50_000)
          }
        }
        for try await isRight in group { #expect(isRight) }
      }
      #expect(origin.counters.requests == 30 && Set(origin.requests.map(\.connection)).count == 30)
    }
  }
}
#endif
