#if Origin
import CacheTesting
import Foundation
import HTTPTypes
import LoopbackOrigin
import Testing

@Suite("Faults of heads, chunks and pace", .timeLimit(.minutes(30)))
struct PacedFaultTests {
  /// Sends a GET and reads to the end of the connection.
  private func outcome(_ delivery: OriginDelivery, fields: HTTPFields = [:]) async throws -> (text: String, end: RawClient.End) {
    var outcome: (bytes: [UInt8], end: RawClient.End)?
    try await withOrigin { origin in
      origin.setRoute("/a", Route(Data("0123456789".utf8), fields: fields, delivery: delivery))
      let client = try await origin.connect()
      try await client.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\n")
      outcome = try await client.rest()
    }
    let (bytes, end) = try #require(outcome)
    return (String(decoding: bytes, as: UTF8.self), end)
  }

  @Test("resetMidHead resets the connection at the position of closeMidHead")
  func resetMidHead() async throws {
    let outcome = try await outcome(.fault(.resetMidHead))

    #expect(outcome.text.hasPrefix("HTTP/1.1 200 OK\r\nDate: ") && !outcome.text.contains("\r\n\r\n") && outcome.end == .reset)
  }

  @Test("an endless head continues as long as the client reads")
  func endlessHead() async throws {
    try await withOrigin { origin in
      origin.setRoute("/a", .fault(.endlessHead))
      let client = try await origin.connect()
      try await client.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\n")

      let text = String(decoding: try await client.take(count: 400_000), as: UTF8.self)

      #expect(text.hasPrefix("HTTP/1.1 200 OK\r\n") && !text.contains("\r\n\r\n"))
      #expect(text.components(separatedBy: "\r\nX-Endless-0: ").count > 50)
      await client.close()
      await origin.waitForOpenConnections()
      #expect(origin.counters(for: "/a").bytesSent < SocketBuffers.limit + (40 << 20))
    }
  }

  @Test("head and body can trickle with unchanged bytes", arguments: [true, false])
  func trickle(head: Bool) async throws {
    try await withOrigin { origin in
      let pause = Duration.milliseconds(1)
      origin.setRoute(
        "/a", Route(Data("trickling".utf8), delivery: .fault(head ? .trickleHead(every: pause) : .trickle(every: pause))))
      let client = try await origin.connect()

      for _ in 0..<2 {
        let response = try await client.get("/a")
        #expect(response.status == 200 && response.text == "trickling")
      }

      #expect(origin.counters.connectionsAccepted == 1 && origin.counters(for: "/a").bodyBytesSent == 18)
    }
  }

  @Test("a trickling body stops when its client disconnects")
  func abandonedTrickle() async throws {
    try await withOrigin { origin in
      origin.setRoute("/a", Route(Data(count: 100_000), delivery: .fault(.trickle(every: .milliseconds(20)))))
      let client = try await origin.connect()
      try await client.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\n")
      _ = try await client.head()

      await client.close()
      await origin.waitForOpenConnections()

      #expect(origin.counters(for: "/a").bodyBytesSent < 100_000)
    }
  }

  @Test(
    "a chunk without a size follows complete chunks, and then the connection is closed",
    arguments: [
      (0, "no size\r\nno chunk\r\n"), (4, "4\r\n0123\r\nno size\r\nno chunk\r\n"),
      (6, "4\r\n0123\r\n2\r\n45\r\nno size\r\nno chunk\r\n"),
      (99, "4\r\n0123\r\n4\r\n4567\r\n2\r\n89\r\nno size\r\nno chunk\r\n"),
    ])
  func malformedChunk(bytes: Int, body: String) async throws {
    let outcome = try await outcome(.init(framing: .chunked(of: 4), fault: .malformedChunk(afterBodyBytes: bytes)))

    #expect(outcome.text.hasSuffix("\r\n\r\n\(body)") && outcome.end == .closed)
    #expect(outcome.text.contains("Transfer-Encoding: chunked"))
  }

  @Test("surplus bytes follow a complete response, and the connection stays open")
  func surplus() async throws {
    try await withOrigin { origin in
      origin.setRoute("/a", Route(Data("ok".utf8), delivery: .fault(.surplus(Data("more".utf8)))))
      let client = try await origin.connect()

      #expect(try await client.get("/a").text == "ok")
      #expect(try await client.take(count: 4) == Array("more".utf8))
      #expect(try await client.get("/a").text == "ok")
      #expect(origin.counters.connectionsAccepted == 1)
    }
  }

  @Test("a connection can be closed after a complete response that promised to keep it open")
  func closeAfterwards() async throws {
    let outcome = try await outcome(.fault(.closeAfterwards))

    #expect(outcome.text.hasSuffix("\r\n\r\n0123456789") && !outcome.text.contains("Connection:") && outcome.end == .closed)
  }

  @Test("a response can have two lengths")
  func twoLengths() async throws {
    var fields = HTTPFields()
    fields.append(HTTPField(name: .contentLength, value: "10"))
    fields.append(HTTPField(name: .contentLength, value: "11"))

    let outcome = try await outcome(.init(closesAfterwards: true), fields: fields)

    #expect(outcome.text.contains("Content-Length: 10\r\nContent-Length: 11\r\n") && outcome.text.hasSuffix("0123456789"))
  }
}
#endif
