#if Origin
import CacheCore
import CacheNetworking
import CacheTesting
import LoopbackOrigin
import Testing

@Suite("URLSession and the downloader contract", .timeLimit(.minutes(30)))
struct DownloaderContractTests {
  /// The statements that the platform cannot satisfy, with the reason. The page CacheNetworking lists them too.
  private static let known: [String: Comment] = [
    "a request body is sent while it is produced":
      "URLSession gets the complete request body, because it may have to send it twice",
    "a damaged content coding fails with a specific error, or is delivered unchanged":
      "libcurl does not verify the checksum at the end of a gzip body",
  ]

  #if canImport(FoundationNetworking)
  private static let lethal: Set<DownloaderContract.Trait> = [.cutHeads]
  #else
  private static let lethal: Set<DownloaderContract.Trait> = []
  #endif

  @Test("the statement holds", arguments: DownloaderContract.cases.filter { $0.needs.isDisjoint(with: lethal) })
  func contract(_ statement: DownloaderContract.Case) async throws {
    // The engine's own time-outs must not fire before a statement's limits, even on a busy machine, or replace those of a
    // request.
    var configuration = SessionDownloader.Configuration()
    configuration.idleTimeout = .seconds(3_600)
    let isKnown = Self.known[statement.name] != nil
    try await Fixture.run(configuration) { fixture in
      try await withKnownIssue(Self.known[statement.name]) {
        // A statement that is known to time out gets a short limit.
        try await statement.run(on: fixture.downloader, origin: fixture.origin, within: .seconds(isKnown ? 20 : 1_800))
      } when: {
        isKnown
      }
    }
  }

  @Test("the known issues name only existing statements")
  func names() {
    let names = Set(DownloaderContract.cases.map(\.name))
    #expect(names.isSuperset(of: Self.known.keys))
  }

  @Test(
    "a statement is skipped if it would terminate the process",
    .disabled("Foundation on Linux traps when a server closes in the middle of the header section"),
    arguments: DownloaderContract.cases.filter { !$0.needs.isDisjoint(with: lethal) })
  func lethalStatements(_ statement: DownloaderContract.Case) async throws {
    try await Fixture.run { fixture in try await statement.run(on: fixture.downloader, origin: fixture.origin) }
  }
}
#endif
