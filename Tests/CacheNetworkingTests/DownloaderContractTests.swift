#if Origin
import CacheCore
import CacheNetworking
import CacheTesting
import LoopbackOrigin
import Testing

@Suite("The contract of downloaders, on URLSession", .timeLimit(.minutes(30)))
struct DownloaderContractTests {
  /// What the platform makes impossible, with the reason; `Modules/CacheNetworking/CacheNetworking.docc/CacheNetworking.md` has
  /// the same list.
  private static let known: [String: Comment] = [
    "a body goes out as it is made": "URLSession is given a request's body whole, since it may have to send it twice",
    "a damaged content coding is an error of its own, or handed over as it is":
      "libcurl does not compare what a gzip body says of itself at its end",
  ]

  #if canImport(FoundationNetworking)
  private static let lethal: Set<DownloaderContract.Trait> = [.cutHeads]
  #else
  private static let lethal: Set<DownloaderContract.Trait> = []
  #endif

  @Test("holds", arguments: DownloaderContract.cases.filter { $0.needs.isDisjoint(with: lethal) })
  func contract(_ statement: DownloaderContract.Case) async throws {
    // No time-out of the engine's own comes before a statement's bounds, however busy the machine is, nor in the place of a
    // request's.
    var configuration = SessionDownloader.Configuration()
    configuration.idleTimeout = .seconds(3_600)
    let isKnown = Self.known[statement.name] != nil
    try await Fixture.run(configuration) { fixture in
      try await withKnownIssue(Self.known[statement.name]) {
        // What fails by waiting in vain is not waited for long.
        try await statement.run(on: fixture.downloader, origin: fixture.origin, within: .seconds(isKnown ? 20 : 1_800))
      } when: {
        isKnown
      }
    }
  }

  @Test("names only statements that there are")
  func names() {
    let names = Set(DownloaderContract.cases.map(\.name))
    #expect(names.isSuperset(of: Self.known.keys))
  }

  @Test(
    "is not tried where it would end the process",
    .disabled("Foundation on Linux traps when a server closes in the middle of the header section"),
    arguments: DownloaderContract.cases.filter { !$0.needs.isDisjoint(with: lethal) })
  func lethalStatements(_ statement: DownloaderContract.Case) async throws {
    try await Fixture.run { fixture in try await statement.run(on: fixture.downloader, origin: fixture.origin) }
  }
}
#endif
