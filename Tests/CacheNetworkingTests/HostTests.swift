#if Origin
import CacheCore
import CacheNetworking
import HTTPTypes
import LoopbackOrigin
import Testing

@Suite("Hosts with URLSession", .timeLimit(.minutes(30))) struct HostTests {
  @Test("the error of an IPv6 literal does not blame the URL")
  func addressLiteral() async throws {
    try await Fixture.run { fixture in
      // Nothing listens at this address: a Foundation that takes the URL says so.
      let head = HTTPRequest(method: .get, scheme: "http", authority: "[::1]:\(fixture.origin.port)", path: "/")
      let error = try #require(await fixture.failure(of: DownloadRequest(head: head)))
      #expect(error.code == .unsupported || error.code == .connectionRefused)
      if error.code == .unsupported { #expect(error.reason.contains("IPv6 literal")) }
    }
  }
}
#endif
