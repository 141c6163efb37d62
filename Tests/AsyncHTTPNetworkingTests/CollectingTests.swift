#if AsyncHTTP && Origin
import AsyncHTTPNetworking
import CacheCore
import CacheTesting
import Foundation
import HTTPTypes
import LoopbackOrigin
import Testing

@Suite("Bodies that the async-http-client engine collects", .timeLimit(.minutes(30)))
struct CollectingTests {
  @Test("a body up to the limit arrives in one piece with its head", arguments: [0, 1, 19_999, 20_000])
  func whole(size: Int) async throws {
    try await Fixture.run { fixture async throws in
      fixture.origin.setRoute("/a", Route(pattern(size)))
      var request = try fixture.request("/a")
      request.collectUpTo = 20_000

      let response = try await fixture.downloader.download(request)

      #expect(response.body.data == pattern(size))
      let metrics = response.metrics()
      #expect(metrics.bytesOnWire == Int64(size) && metrics.total != nil && metrics.timeToHead != nil)
    }
  }

  @Test("a body is collected although its second half arrives late")
  func late() async throws {
    try await Fixture.run { fixture async throws in
      let gate = Gate()
      fixture.origin.setRoute("/a", Route(pattern(400_000), delivery: OriginDelivery(bodyGate: gate, bodyGateOffset: 1_000)))
      var request = try fixture.request("/a")
      // More than a slow reader may leave unread.
      request.collectUpTo = 1 << 20
      async let response = fixture.downloader.download(request)
      await gate.arrived()
      gate.open()
      #expect(try await response.body.data == pattern(400_000))
    }
  }

  @Test("a response to a request with a body is collected too")
  func upload() async throws {
    try await Fixture.run { fixture async throws in
      fixture.origin.setRoute("/a", Route(pattern(1_000)))
      var request = try fixture.request("/a", method: .post, body: ResourceBody(pattern(50_000)))
      request.collectUpTo = 1_000
      #expect(try await fixture.downloader.download(request).body.data == pattern(1_000))
    }
  }
}
#endif
