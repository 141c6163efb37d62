#if AsyncHTTP
import AsyncHTTPNetworking
import CacheTesting
import LoopbackOrigin
import Testing

@Suite("AsyncHTTPDownloader keeps the downloaders' contract")
struct ContractTests {
  @Test("every statement of the contract holds", .timeLimit(.minutes(2)), arguments: DownloaderContract.cases)
  func statement(_ statement: DownloaderContract.Case) async throws {
    let origin = try await OriginServer.start()
    let downloader = AsyncHTTPDownloader()
    try await statement.run(on: downloader, origin: origin)
    await downloader.close()
    await origin.stop()
  }
}
#endif
