#if AsyncHTTP && Origin
import AsyncHTTPNetworking
import CacheTesting
import Testing

@Suite("The contract of downloaders, on async-http-client", .timeLimit(.minutes(30)))
struct ContractTests {
  /// What this engine leaves to what is above it: a manager decides itself who may have whose answer.
  private static let lacks: Set<DownloaderContract.Trait> = [.sharing]

  @Test("holds", arguments: DownloaderContract.cases.filter { $0.needs.isDisjoint(with: lacks) })
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

  @Test(
    "is not kept where the engine would have to share", .disabled("equal requests are shared by the manager, not by this engine"),
    arguments: DownloaderContract.cases.filter { !$0.needs.isDisjoint(with: lacks) })
  func lacking(_ statement: DownloaderContract.Case) async throws {
    try await Fixture.run { fixture in try await statement.run(on: fixture.downloader, origin: fixture.origin) }
  }
}
#endif
