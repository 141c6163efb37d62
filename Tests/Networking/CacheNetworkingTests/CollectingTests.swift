#if Origin
import CacheNetworking
import CacheCore
import CacheTesting
import Foundation
import HTTPTypes
import LoopbackOrigin
import Testing

@Suite("Bodies that contradict their length, which URLSession may collect", .timeLimit(.minutes(30)))
struct CollectingTests {
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
