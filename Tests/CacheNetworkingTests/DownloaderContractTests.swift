#if Origin
import CacheCore
import CacheNetworking
import CacheTesting
import LoopbackOrigin
import Testing

@Suite("The contract of downloaders, on URLSession")
struct DownloaderContractTests {
  @Test("holds", .timeLimit(.minutes(10)), arguments: DownloaderContract.cases)
  func contract(_ statement: DownloaderContract.Case) async throws {
    try await Fixture.run { fixture in try await statement.run(on: fixture.downloader, origin: fixture.origin) }
  }
}
#endif
