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
    try await Fixture.run { fixture in try await statement.run(on: fixture.downloader, origin: fixture.origin) }
  }

  @Test(
    "is not kept where the engine would have to share", .disabled("equal requests are shared by the manager, not by this engine"),
    arguments: DownloaderContract.cases.filter { !$0.needs.isDisjoint(with: lacks) })
  func lacking(_ statement: DownloaderContract.Case) async throws {
    try await Fixture.run { fixture in try await statement.run(on: fixture.downloader, origin: fixture.origin) }
  }
}
#endif
