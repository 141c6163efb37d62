#if Origin
import CacheTesting
import Foundation
import HTTPTypes
import LoopbackOrigin
import Testing

@Suite("Faults", .timeLimit(.minutes(30)))
struct FaultTests {
  /// Sends a GET and reads to the end of the connection.
  private func outcome(_ delivery: OriginDelivery, body: Data = pattern(1000)) async throws -> (
    bytes: [UInt8], end: RawClient.End
  ) {
    var outcome: (bytes: [UInt8], end: RawClient.End)?
    try await withOrigin { origin in
      origin.setRoute("/a", Route(body, delivery: delivery))
      let client = try await origin.connect()
      try await client.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\n")
      outcome = try await client.rest()
    }
    return try #require(outcome)
  }

  private func split(_ bytes: [UInt8]) throws -> (head: String, body: [UInt8]) {
    let end = try #require(Data(bytes).range(of: Data("\r\n\r\n".utf8)))
    return (String(decoding: bytes[..<end.upperBound], as: UTF8.self), Array(bytes[end.upperBound...]))
  }

  @Test(
    "a connection can end before the first byte of a response",
    arguments: [(OriginFault.closeBeforeHead, RawClient.End.closed), (.resetBeforeHead, .reset)])
  func beforeHead(fault: OriginFault, end: RawClient.End) async throws {
    let outcome = try await outcome(.fault(fault))

    #expect(outcome.bytes.isEmpty && outcome.end == end)
  }

  @Test("closeMidHead closes the connection after the status line and before the empty line")
  func midHead() async throws {
    let outcome = try await outcome(.fault(.closeMidHead))

    let text = String(decoding: outcome.bytes, as: UTF8.self)
    #expect(text.hasPrefix("HTTP/1.1 200 OK\r\nDate: ") && !text.contains("\r\n\r\n") && outcome.end == .closed)
  }

  @Test(
    "a body with a length ends after the given number of bytes",
    arguments: [
      (0, OriginFault.cut(afterBodyBytes: 0)), (700, .cut(afterBodyBytes: 700)), (700, .reset(afterBodyBytes: 700)),
      (0, .reset(afterBodyBytes: 0)),
    ])
  func cutLength(sent: Int, fault: OriginFault) async throws {
    let outcome = try await outcome(.fault(fault))

    let (head, body) = try split(outcome.bytes)
    #expect(head.contains("\r\nContent-Length: 1000\r\n") && !head.contains("Connection:"))
    #expect(Data(body) == pattern(1000).prefix(sent))
    if case .cut = fault { #expect(outcome.end == .closed) } else { #expect(outcome.end == .reset) }
  }

  @Test(
    "a chunked body is cut in the middle of a chunk, and its last chunk is never sent",
    arguments: [(700, [400, 300], false), (400, [400], true), (1000, [400, 400, 200], true), (5000, [400, 400, 200], true)])
  func cutChunked(sent: Int, parts: [Int], isWhole: Bool) async throws {
    let outcome = try await outcome(.init(framing: .chunked(of: 400), fault: .cut(afterBodyBytes: sent)))

    var expected = Data()
    var offset = 0
    for part in parts {
      expected += Data("\(String(min(400, 1000 - offset), radix: 16))\r\n".utf8) + pattern(1000)[offset..<offset + part]
      offset += part
      if offset % 400 == 0 || offset == 1000 { expected += Data("\r\n".utf8) }
    }
    let (head, body) = try split(outcome.bytes)
    #expect(head.contains("\r\nTransfer-Encoding: chunked\r\n") && !head.contains("Content-Length"))
    #expect(Data(body) == expected && outcome.end == .closed)
    #expect(body.suffix(2) == [13, 10] || !isWhole)
  }

  @Test("a claimed length may be too large or too small, and the connection is closed", arguments: [10, 999, 1001, 5000])
  func lies(claimed: Int) async throws {
    let outcome = try await outcome(.init(framing: .claimedLength(claimed)))

    let (head, body) = try split(outcome.bytes)
    #expect(head.contains("\r\nContent-Length: \(claimed)\r\n"))
    #expect(Data(body) == pattern(1000) && outcome.end == .closed)
  }

  @Test("garbage is not HTTP, and the connection is closed after it")
  func garbage() async throws {
    let outcome = try await outcome(.fault(.garbage))

    #expect(outcome.bytes.count > 10 && !outcome.bytes.starts(with: Array("HTTP".utf8)) && outcome.end == .closed)
  }

  @Test("raw bytes are sent unchanged, and the connection is closed or reused")
  func raw() async throws {
    let bytes = Data("HTTP/1.1 299 Odd\r\nX:1\r\nContent-Length: 2\r\n\r\nok".utf8)
    let outcome = try await outcome(.fault(.raw(bytes)))
    #expect(Data(outcome.bytes) == bytes && outcome.end == .closed)

    try await withOrigin { origin in
      origin.setRoute("/raw", .fault(.raw(bytes, thenCloses: false)))
      let client = try await origin.connect()
      #expect(try await client.get("/raw").status == 299)
      #expect(try await client.get("/raw")["X"] == "1")
      #expect(origin.counters.connectionsAccepted == 1)
    }
  }

  @Test("a stalled response sends its first bytes and no more until stop()", arguments: [nil, 0, 300])
  func stall(sent: Int?) async throws {
    try await withOrigin { origin in
      // Given
      let fault = sent.map { OriginFault.stall(afterBodyBytes: $0) } ?? .stallBeforeHead
      origin.setRoute("/a", Route(pattern(1000), delivery: .fault(fault)))
      let client = try await origin.connect()

      // When
      try await client.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\n")
      await origin.waitForRequests(path: "/a")
      if let sent {
        let head = try await client.head()
        #expect(head.contains("Content-Length: 1000"))
        #expect(try await client.take(count: sent) == Array(pattern(1000).prefix(sent)))
      }

      // Then
      #expect(origin.counters.openConnections == 1)
      await origin.stop()
      #expect(try await client.rest().bytes.isEmpty)
    }
  }

  @Test("the connection of a stalled or waiting client that disconnects is closed")
  func abandoned() async throws {
    try await withOrigin { origin in
      let gate = Gate()
      origin.setRoute("/stall", .fault(.stallBeforeHead))
      origin.setRoute("/held", Route(Data(), delivery: .gated(by: gate)))
      for path in ["/stall", "/held"] {
        let client = try await origin.connect()
        try await client.send("GET \(path) HTTP/1.1\r\nHost: a\r\n\r\n")
        await origin.waitForRequests(path: path)

        await client.close()

        await origin.waitForOpenConnections()
        #expect(origin.counters.openConnections == 0)
      }
      await gate.emptied()
      #expect(gate.held == 0 && gate.arrivals == 1)
    }
  }

  @Test("a fault also applies to a 304")
  func faultyNotModified() async throws {
    try await withOrigin { origin in
      origin.setRoute("/a", Route(Data("body".utf8), etag: "v1", delivery: .fault(.closeMidHead)))
      let client = try await origin.connect()

      try await client.send("GET /a HTTP/1.1\r\nHost: a\r\nIf-None-Match: \"v1\"\r\n\r\n")

      let outcome = try await client.rest()
      #expect(outcome.bytes.starts(with: Array("HTTP/1.1 304".utf8)) && outcome.end == .closed)
      #expect(origin.counters.notModified == 0, "no complete 304 was sent")
    }
  }

  @Test("requests after a fault on the same connection get no response")
  func pipelinedBehindFault() async throws {
    try await withOrigin { origin in
      origin.setRoute("/a", .fault(.cut(afterBodyBytes: 2)))
      let client = try await origin.connect()

      try await client.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\nGET /b HTTP/1.1\r\nHost: a\r\n\r\n")

      let outcome = try await client.rest()
      #expect(String(decoding: outcome.bytes, as: UTF8.self).hasSuffix("\r\n\r\nfa"))
    }
  }

  @Test("a body without a length or chunks ends with the connection")
  func untilClose() async throws {
    let outcome = try await outcome(.init(framing: .untilClose))

    let (head, body) = try split(outcome.bytes)
    #expect(!head.contains("Content-Length") && !head.contains("Transfer-Encoding") && head.contains("Connection: close"))
    #expect(Data(body) == pattern(1000) && outcome.end == .closed)
  }

  @Test(
    "a chunked body arrives complete in the requested chunks",
    arguments: [(0, []), (7, [7]), (16, [8, 8]), (17, [8, 8, 1])] as [(Int, [Int])])
  func chunked(count: Int, chunks: [Int]) async throws {
    try await withOrigin { origin in
      origin.setRoute("/a", Route(pattern(count), delivery: .chunked(of: 8)))
      let client = try await origin.connect()

      for _ in 0..<2 {
        let response = try await client.get("/a")
        #expect(Data(response.body) == pattern(count) && response.chunks == chunks)
      }
    }
  }
}
#endif
