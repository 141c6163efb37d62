#if Origin
import CacheTesting
import Foundation
import LoopbackOrigin
import Testing

/// Only lower bounds are measured: a busy machine is late, but nothing may come earlier than the link allows.
@Suite("The link", .timeLimit(.minutes(30)))
struct LinkTests {
  private let clock = ContinuousClock()

  @Test("a body takes its bits' time, heads included, and arrives whole")
  func bandwidth() async throws {
    try await withOrigin(link: NetworkLink(bitsPerSecond: 8_000_000)) { origin in
      origin.setRoute("/a", Route(pattern(200_000)))
      let client = try await origin.connect()

      let start = clock.now
      let answer = try await client.get("/a")
      let elapsed = clock.now - start

      #expect(Data(answer.body) == pattern(200_000))
      #expect(elapsed >= .milliseconds(200))
    }
  }

  @Test("a request costs a round trip, and the first of a connection one more")
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

  @Test("connections share one pipe: two bodies take the time of both, and end together")
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

  @Test("a small answer does not wait for a large one that came first")
  func turns() async throws {
    // A packet takes 0.4 s here: the large answer would need ten minutes.
    try await withOrigin(link: NetworkLink(bitsPerSecond: 29_200)) { origin in
      let largeStarted = Gate(isOpen: true)
      origin.setRoute("/large", Route(pattern(2_000_000), delivery: .gated(by: largeStarted)))
      origin.setRoute("/small", Route(Data("x".utf8)))
      let (large, small) = (try await origin.connect(), try await origin.connect())
      try await large.send("GET /large HTTP/1.1\r\nHost: a\r\n\r\n")
      await largeStarted.arrived()

      let answer = try await small.get("/small")

      #expect(answer.text == "x")
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

  @Test("requests and a half-close keep their order through the latency")
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

  @Test("a link that goes down resets what is open, and new connections until it is up again")
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

  @Test("a body that is under way goes on when the link changes, whole and in order")
  func change() async throws {
    // A packet takes 58 ms here, the whole body 40 s.
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
