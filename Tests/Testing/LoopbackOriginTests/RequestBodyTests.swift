#if Origin
import Foundation
import LoopbackOrigin
import Testing

@Suite("Request bodies", .timeLimit(.minutes(30)))
struct RequestBodyTests {
  @Test("a body beyond the limit is counted and identified by its digest", arguments: [0, 10, 99_999, 100_000, 200_000])
  func kept(limit: Int) async throws {
    let origin = try await OriginServer.start(recordedBodyLimit: limit)
    origin.setRoute("/a", Route(Data()))
    let client = try await origin.connect()
    let text = String(repeating: "0123456789", count: 10_000)

    _ = try await client.request("POST", "/a", ["Content-Length: 100000"], body: text)

    let request = try #require(origin.requests.first)
    #expect(request.bodyLength == 100_000 && request.body == Data(text.utf8).prefix(limit))
    #expect(request.bodyDigest == (limit < 100_000 ? ReceivedRequest.digest(of: Data(text.utf8)) : nil))
    #expect(origin.counters(for: "/a").requestBodyBytes == 100_000)
    await origin.stop()
  }

  @Test("a body is counted as it arrives, before its request is complete")
  func streaming() async throws {
    try await withOrigin { origin in
      origin.setRoute("/a", Route(Data()))
      let client = try await origin.connect()
      try await client.send("POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n01234")

      await origin.waitForRequestBody(path: "/a", bytes: 5)

      #expect(origin.counters(for: "/a").requestBodyBytes == 5 && origin.requests.isEmpty)
      try await client.send("56789")
      #expect(try await client.response().status == 200)
      #expect(origin.requests.map(\.body) == [Data("0123456789".utf8)])
    }
  }

  @Test("a digest depends on order and count, as 64-bit FNV-1a does")
  func digest() {
    #expect(ReceivedRequest.digest(of: Data()) == 0xcbf2_9ce4_8422_2325)
    #expect(ReceivedRequest.digest(of: Data("a".utf8)) == 0xaf63_dc4c_8601_ec8c)
    #expect(ReceivedRequest.digest(of: Data("ab".utf8)) != ReceivedRequest.digest(of: Data("ba".utf8)))
  }
}
#endif
