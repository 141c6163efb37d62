import CacheTesting
import Etagere
import Foundation
import Testing

#if Origin
import LoopbackOrigin
#endif

@Suite("Retries of a standard manager")
struct RetryTests {
  @Test("the default downloader retries and resumes, and another downloader is used unchanged")
  func composed() throws {
    let retrying = try #require(try ResourceManager.Configuration.standard(folder: nil).downloader as? RecoveringDownloader)
    let resuming = try #require(retrying.base as? RecoveringDownloader)
    #expect(!retrying.resumes && resuming.resumes)
    #if canImport(Darwin)
    #expect(resuming.base is SessionDownloader)
    #else
    #expect((resuming.base as? WarningSessionDownloader)?.base is SessionDownloader)
    #endif
    #expect(retrying.policy.maximumAttempts == RetryPolicy.brief.maximumAttempts)
    #expect(resuming.policy.maximumAttempts == RetryPolicy.standard.maximumAttempts)

    let other = ScriptedDownloader()
    #expect(
      try ResourceManager.Configuration.standard(folder: nil, downloader: other).downloader as? ScriptedDownloader === other)
  }

  #if Origin
  @Test("a large file that is cut off is resumed at its last byte")
  func resumed() async throws {
    try await OriginFixture.run { fixture in
      let bytes = pattern(100_000)
      fixture.origin.setRoute(
        "/a",
        Route(
          bytes, etag: "v1", fields: [.cacheControl: "max-age=3600"], acceptsRanges: true,
          delivery: OriginDelivery(fault: .cut(afterBodyBytes: 60_000))))
      let manager = try fixture.manager()

      let resource = try await manager.load(fixture.origin.url("/a"))

      #expect(resource.data == bytes && resource.metrics.attempts == 2)
      #expect(fixture.requests("/a") == 2)
      #expect(try await manager.load(fixture.origin.url("/a")).source == .memory)
    }
  }
  #endif
}
