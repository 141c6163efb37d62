#if Origin
import CacheNetworking
import CacheCore
import CacheTesting
import Foundation
import HTTPTypes
import LoopbackOrigin
import Testing

@Suite("Bodies that URLSession collects", .timeLimit(.minutes(30)))
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
      request.collectUpTo = 1 << 20
      async let response = fixture.downloader.download(request)
      await gate.arrived()
      gate.open()
      #expect(try await response.body.data == pattern(400_000))
    }
  }

  /// Serves a body of 300,000 bytes in chunks, whose `Content-Length` is 5. The gate holds back the end.
  private func serveBothFramings(_ fixture: Fixture, _ gate: Gate) throws -> DownloadRequest {
    let delivery = OriginDelivery(bodyGate: gate, bodyGateOffset: 290_000, framing: .chunked())
    fixture.origin.setRoute("/a", Route(pattern(300_000), fields: [.contentLength: "5"], delivery: delivery))
    var request = try fixture.request("/a")
    request.collectUpTo = 20_000
    return request
  }

  @Test("a body with a transfer coding is not collected, whatever length its head states")
  func bothFramings() async throws {
    try await Fixture.run { fixture async throws in
      let gate = Gate()
      let response = try await fixture.downloader.download(serveBothFramings(fixture, gate))
      #expect(response.body.length == nil && response.body.data == nil)
      #expect(response.head.headerFields[.contentLength] == nil)
      gate.open()
      #expect(try await response.body.collect() == pattern(300_000))
    }
  }

  @Test("a download returns although more bytes arrive than may be buffered")
  func smallBuffer() async throws {
    var configuration = SessionDownloader.Configuration()
    configuration.bufferLimit = 64 << 10
    try await Fixture.run(configuration) { fixture async throws in
      let gate = Gate()
      let response = try await fixture.downloader.download(serveBothFramings(fixture, gate))
      gate.open()
      // Nothing slows the origin down, so its bytes may arrive faster than they are read.
      do {
        #expect(try await response.body.collect() == pattern(300_000))
      } catch let error as CacheError {
        #expect(error.code == .readerTooSlow)
      }
    }
  }
}
#endif
