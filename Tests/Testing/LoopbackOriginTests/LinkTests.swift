#if Origin
import CacheTesting
import Foundation
import LoopbackOrigin
import Testing

/// Tests check only lower bounds: a busy machine may be late, but no byte may arrive earlier than the link allows.
@Suite("Simulated links", .timeLimit(.minutes(30)))
struct LinkTests {
  private let clock = ContinuousClock()

  @Test("a body takes the time of its bits, including heads, and arrives complete")
  func bandwidth() async throws {
    try await withOrigin(link: NetworkLink(bitsPerSecond: 8_000_000)) { origin in
      origin.setRoute("/a", Route(pattern(200_000)))
      let client = try await origin.connect()

      let start = clock.now
      let response = try await client.get("/a")
      let elapsed = clock.now - start

      #expect(Data(response.body) == pattern(200_000))
      #expect(elapsed >= .milliseconds(200))
    }
  }

  @Test("a request takes a round trip, and the first one of a connection takes two")
  func latency() async throws {
    try await withOrigin(link: NetworkLink(latency: .milliseconds(20))) { origin in
      origin.setRoute("/a", Route(Data("x".utf8)))
      let start = clock.now
      let client = try await origin.connect()
      _ = try await client.get("/a")
      let first = clock.now
      _ = try await client.get("/a")
      let second = clock.now

      #expect(first - start >= .milliseconds(80))
      #expect(second - first >= .milliseconds(40))
    }
  }

  @Test("two bodies on separate connections take the time of both and end together")
  func sharing() async throws {
    try await withOrigin(link: NetworkLink(bitsPerSecond: 8_000_000)) { origin in
      let gate = Gate()
      origin.setRoute("/a", Route(pattern(100_000), delivery: .gated(by: gate)))
      let clients = [try await origin.connect(), try await origin.connect()]
      let (first, second) = (clients[0], clients[1])
      async let one = first.get("/a")
      async let two = second.get("/a")
      await gate.arrived(2)

      let start = clock.now
      gate.open()
      let bodies = [try await one.body, try await two.body]
      let elapsed = clock.now - start

      #expect(bodies.allSatisfy { Data($0) == pattern(100_000) })
      #expect(elapsed >= .milliseconds(200))
    }
  }

  @Test("a small response does not wait for an earlier large one")
  func turns() async throws {
    // A packet takes 0.4 s on this link, so the large response would need ten minutes.
    try await withOrigin(link: NetworkLink(bitsPerSecond: 29_200)) { origin in
      let largeStarted = Gate(isOpen: true)
      origin.setRoute("/large", Route(pattern(2_000_000), delivery: .gated(by: largeStarted)))
      origin.setRoute("/small", Route(Data("x".utf8)))
      let (large, small) = (try await origin.connect(), try await origin.connect())
      try await large.send("GET /large HTTP/1.1\r\nHost: a\r\n\r\n")
      await largeStarted.arrived()

      let response = try await small.get("/small")

      #expect(response.text == "x")
      #expect(origin.counters(for: "/large").bodyBytesSent < 1_000_000)
    }
  }

  @Test("a close waits for the bytes before it")
  func close() async throws {
    try await withOrigin(link: NetworkLink(bitsPerSecond: 4_000_000, latency: .milliseconds(5))) { origin in
      origin.setRoute("/a", Route(pattern(20_000), delivery: .init(framing: .untilClose)))
      origin.setRoute("/b", Route(pattern(20_000), delivery: .fault(.cut(afterBodyBytes: 10_000))))
      origin.setRoute("/c", Route(pattern(20_000), delivery: .fault(.reset(afterBodyBytes: 10_000))))
      let (a, b, c) = (try await origin.connect(), try await origin.connect(), try await origin.connect())

      #expect(try await Data(a.get("/a").body) == pattern(20_000))
      try await b.send("GET /b HTTP/1.1\r\nHost: a\r\n\r\n")
      _ = try await b.head()
      let cut = try await b.rest()
      #expect(Data(cut.bytes) == pattern(20_000).prefix(10_000) && cut.end == .closed)
      try await c.send("GET /c HTTP/1.1\r\nHost: a\r\n\r\n")
      _ = try await c.head()
      let reset = try await c.rest()
      #expect(Data(reset.bytes) == pattern(20_000).prefix(10_000) && reset.end == .reset)
    }
  }

  @Test("requests and a half-close keep their order with latency")
  func orderUpstream() async throws {
    try await withOrigin(link: NetworkLink(latency: .milliseconds(5))) { origin in
      origin.setRoute("/a", Route(Data("a".utf8)))
      origin.setRoute("/b", Route(Data("b".utf8)))
      let client = try await origin.connect()
      try await client.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\nGET /b HTTP/1.1\r\n")
      try await client.send("Host: a\r\n\r\n")
      await client.finishSending()

      #expect(try await client.response().text == "a")
      #expect(try await client.response().text == "b")
      #expect(try await client.rest().end == .closed)
    }
  }

  @Test("a link that goes down resets open connections, and new ones until it is up again")
  func offline() async throws {
    try await withOrigin { origin in
      // Given
      origin.setRoute("/a", Route(Data("x".utf8)))
      origin.setRoute("/stall", .fault(.stallBeforeHead))
      let (idle, waiting) = (try await origin.connect(), try await origin.connect())
      _ = try await idle.get("/a")
      try await waiting.send("GET /stall HTTP/1.1\r\nHost: a\r\n\r\n")
      await origin.waitForRequests(path: "/stall")

      // When
      await origin.setLink(.offline)

      // Then
      #expect(try await idle.rest().end == .reset)
      #expect(try await waiting.rest().end == .reset)
      #expect(origin.counters.openConnections == 0)
      let refused = try await origin.connect()
      #expect(try await refused.rest().end == .reset)
      #expect(origin.counters.connectionsAccepted == 2)

      await origin.setLink(nil)
      #expect(try await origin.connect().get("/a").text == "x")
    }
  }

  @Test("a body in transit continues when the link changes, complete and in order")
  func change() async throws {
    // A packet takes 58 ms on this link, and the whole body takes 40 s.
    try await withOrigin(link: NetworkLink(bitsPerSecond: 200_000)) { origin in
      origin.setRoute("/a", Route(pattern(1_000_000)))
      let client = try await origin.connect()
      try await client.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\n")
      _ = try await client.head()
      let start = try await client.take(count: 3000)

      await origin.setLink(NetworkLink(bitsPerSecond: 80_000_000, latency: .milliseconds(1)))
      let middle = try await client.take(count: 100_000)
      await origin.setLink(nil)
      let rest = try await client.take(count: 897_000)

      #expect(Data(start + middle + rest) == pattern(1_000_000))
    }
  }
}
#endif
