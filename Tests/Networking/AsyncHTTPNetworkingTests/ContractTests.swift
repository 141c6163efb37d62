#if AsyncHTTP && Origin
import AsyncHTTPNetworking
import CacheTesting
import Testing

@Suite("async-http-client and the downloader contract", .timeLimit(.minutes(30)))
struct ContractTests {
  @Test("the statement holds", arguments: DownloaderContract.cases)
  func statement(_ statement: DownloaderContract.Case) async throws {
    // The engine's own time-outs must not fire before a statement's limits, even on a busy machine, or replace those of a
    // request.
    let configuration = AsyncHTTPDownloader.Configuration {
      $0.idleTimeout = .seconds(3_600)
      $0.connectTimeout = .seconds(3_600)
    }
    try await Fixture.run(configuration) { fixture in
      try await statement.run(on: fixture.downloader, origin: fixture.origin, within: .seconds(1_800))
    }
  }
}
#endif
