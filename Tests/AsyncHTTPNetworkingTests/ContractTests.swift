#if AsyncHTTP && Origin
import AsyncHTTPNetworking
import CacheTesting
import Testing

@Suite("The contract of downloaders, on async-http-client", .timeLimit(.minutes(30)))
struct ContractTests {
  @Test("holds", arguments: DownloaderContract.cases)
  func statement(_ statement: DownloaderContract.Case) async throws {
    // No time-out of the engine's own comes before a statement's bounds, however busy the machine is, nor in the place of a
    // request's.
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
