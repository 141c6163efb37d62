#if Origin
import CacheCore
import CacheNetworking
import CacheTesting
import LoopbackOrigin
import Testing

@Suite("The contract of downloaders, on URLSession", .timeLimit(.minutes(10)))
struct DownloaderContractTests {
  /// What the platform makes impossible, with the reason; `Docs/CacheNetworking.md` has the same list.
  private static let known: [String: Comment] = [
    "a body goes out as it is made": "URLSession is given a request's body whole, since it may have to send it twice"
  ]

  /// What depends on the version of the platform: the engine keeps it where Foundation and libcurl let it.
  private static let versionDependent: [String: Comment] = [
    "an answer is measured": "the end of a body is not always timed",
    "a body that trickles for ever runs into the whole time-out": "Foundation ignores timeoutIntervalForResource",
    "a server that never answers runs into the whole time-out": "Foundation ignores timeoutIntervalForResource",
    "two lengths that differ are an error, and equal ones are one": "libcurl takes the last one",
    "a length that is no number is an error": "libcurl's words for it vary",
    "a damaged content coding is an error of its own, or handed over as it is": "libcurl's words for it vary",
  ]

  #if canImport(FoundationNetworking)
  private static let lethal: Set<DownloaderContract.Trait> = [.cutHeads]
  #else
  private static let lethal: Set<DownloaderContract.Trait> = []
  #endif

  @Test("holds", arguments: DownloaderContract.cases.filter { $0.needs.isDisjoint(with: lethal) })
  func contract(_ statement: DownloaderContract.Case) async throws {
    let (reason, varying) = (Self.known[statement.name], Self.versionDependent[statement.name])
    try await Fixture.run { fixture in
      try await withKnownIssue(reason ?? varying, isIntermittent: reason == nil) {
        try await statement.run(on: fixture.downloader, origin: fixture.origin)
      } when: {
        reason != nil || varying != nil
      }
    }
  }

  @Test("names only statements that there are")
  func names() {
    let names = Set(DownloaderContract.cases.map(\.name))
    #expect(names.isSuperset(of: Self.known.keys) && names.isSuperset(of: Self.versionDependent.keys))
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
