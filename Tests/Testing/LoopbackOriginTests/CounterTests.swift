#if Origin
import CacheTesting
import Foundation
import HTTPTypes
import LoopbackOrigin
import Testing

@Suite("Counters and the request log", .timeLimit(.minutes(30)))
struct CounterTests {
  @Test("bytes are counted exactly, in total and by path, before the client has its response")
  func counts() async throws {
    try await withOrigin { origin in
      // Given
      origin.setRoute("/a", Route(pattern(1000), etag: "v1"))
      origin.setRoute("/b", Route(pattern(500), delivery: .chunked(of: 200)))
      let client = try await origin.connect()

      // When
      let full = try await client.get("/a")
      let unchanged = try await client.get("/a", "If-None-Match: \"v1\"")
      let changed = try await client.get("/a", "If-None-Match: \"v0\"")
      let chunked = try await client.get("/b?x")

      // Then
      let (a, b, all) = (origin.counters(for: "/a"), origin.counters(for: "/b"), origin.counters)
      #expect(a.requests == 3 && a.conditionalRequests == 2 && a.notModified == 1 && a.bodyBytesSent == 2000)
      #expect(a.bytesSent == 2000 + [full, unchanged, changed].map(\.head.utf8.count).reduce(0, +))
      #expect(b.requests == 1 && b.bodyBytesSent == 500)
      // Three chunks: "c8" twice and "64" once, each with two line ends, and the last chunk.
      #expect(b.bytesSent == 500 + chunked.head.utf8.count + 3 * 6 + 5)
      #expect(all.bytesSent == a.bytesSent + b.bytesSent && all.bodyBytesSent == 2500 && all.requests == 4)
      #expect(all.bytesReceived == a.bytesReceived + b.bytesReceived)
      #expect(b.bytesReceived == "GET /b?x HTTP/1.1\r\nHost: test\r\n\r\n".utf8.count)
      #expect(all.connectionsAccepted == 1 && all.openConnections == 1 && a.connectionsAccepted == 0)
      #expect(origin.counters(for: "/none") == OriginCounters())
    }
  }

  @Test("bytes that a client did not wait for are not counted as sent")
  func abandonedBody() async throws {
    try await withOrigin { origin in
      let size = 2 * SocketBuffers.limit + (40 << 20)
      origin.setRoute("/a", Route(Data(count: size)))
      let client = try await origin.connect()
      try await client.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\n")
      _ = try await client.head()

      await client.close()
      await origin.waitForOpenConnections()

      #expect(origin.counters(for: "/a").bodyBytesSent < size / 2)
    }
  }

  @Test("a reset clears requests and counters, but not the number of open connections")
  func reset() async throws {
    try await withOrigin { origin in
      origin.setRoute("/a", Route(Data("x".utf8)))
      let client = try await origin.connect()
      _ = try await client.get("/a")

      origin.resetCounters()

      var expected = OriginCounters()
      expected.openConnections = 1
      #expect(origin.counters == expected && origin.requests.isEmpty && origin.counters(for: "/a") == OriginCounters())
      _ = try await client.get("/a")
      #expect(origin.counters.requests == 1 && origin.counters.connectionsAccepted == 0)
      #expect(origin.requests.map(\.order) == [0])
    }
  }

  @Test("the log records complete requests and removes the oldest ones beyond its limit")
  func log() async throws {
    try await withOrigin(logLimit: 2) { origin in
      let (first, second) = (try await origin.connect(), try await origin.connect())
      _ = try await first.get("/1")
      _ = try await second.get("/2", "X-Name: a", "X-Name: b")
      _ = try await first.request("POST", "/3", ["Content-Length: 2"], body: "hi")

      #expect(origin.requests.map(\.path) == ["/2", "/3"])
      #expect(origin.requests(for: "/2").first?.fields.filter { $0.name.rawName == "X-Name" }.map(\.value) == ["a", "b"])
      #expect(origin.requests(for: "/3").map(\.body) == [Data("hi".utf8)])
      #expect(origin.requests.map(\.connection) == [1, 0] && origin.requests.map(\.order) == [1, 2])
      #expect(origin.counters.requests == 3)
    }
  }

  @Test("a test can wait for requests to one path or to any")
  func waiting() async throws {
    try await withOrigin { origin in
      let client = try await origin.connect()
      async let three = origin.waitForRequests(path: "/a", count: 3)
      async let any = origin.waitForRequests(count: 4)

      for path in ["/a", "/b", "/a", "/a"] { _ = try await client.get(path) }

      #expect(await three.map(\.path) == ["/a", "/a", "/a"])
      #expect(await any.count == 4)
      #expect(await origin.waitForRequests(path: "/b").count == 1, "a past request needs no wait")
    }
  }

  @Test("a wait ends when its task is cancelled or the origin stops", arguments: [true, false])
  func endedWait(cancels: Bool) async throws {
    try await withOrigin { origin in
      let task = Task { await origin.waitForRequests(path: "/never") }
      if cancels { task.cancel() } else { await origin.stop() }

      #expect(await task.value.isEmpty)
    }
  }
}
#endif
