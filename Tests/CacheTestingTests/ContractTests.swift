import CacheCore
import CacheTesting
import Testing

@Suite("The contracts", .timeLimit(.minutes(10)))
struct ContractTests {
  @Test("of stores is kept by the volatile store", arguments: StoreContract.cases)
  func volatileStore(_ statement: StoreContract.Case) async throws {
    try await statement.run(on: VolatileStore())
  }

  @Test("of downloaders is kept by the scripted downloader", arguments: DownloaderContract.cases)
  func scriptedDownloader(_ statement: DownloaderContract.Case) async throws {
    let network = ScriptedDownloader()
    try await statement.run(on: network, origin: network)
  }

  @Test("have statements that can be told apart")
  func names() {
    let names = StoreContract.cases.map(\.name) + DownloaderContract.cases.map(\.name)
    #expect(Set(names).count == names.count)
    #expect(names.count > 20)
    #expect(StoreContract.cases.map(\.description) == StoreContract.cases.map(\.name))
  }

  @Test(
    "of stores finds a store's mistake, and names it",
    arguments: [
      (FlawedStore.Flaw.changesBytes, "bodies of any size come back byte for byte, with their metadata"),
      (.ignoresRevisions, "freshening another revision, or nothing, changes nothing and says so"),
      (.ignoresRevisions, "removal goes by revision, and what is not there is no error"),
      (.showsUncommitted, "nothing is visible before the commit"),
      (.showsUncommitted, "an aborted, or a dropped, writer leaves what was there"),
      (.keepsWhatIsRemoved, "removal goes by revision, and what is not there is no error"),
      (.listsOtherResources, "the variants of a resource are listed, and those of another are not"),
      (.losesLength, "bodies of any size come back byte for byte, with their metadata"),
      (.endsShort, "who follows a writer that is aborted gets an error, not a short body"),
    ])
  func flawedStores(_ flaw: FlawedStore.Flaw, _ broken: String) async {
    var violated: [String] = []
    for statement in StoreContract.cases {
      do {
        try await statement.run(on: FlawedStore(flaw))
      } catch {
        violated.append(statement.name)
      }
    }
    #expect(violated.contains(broken))
    // Who does one thing wrong does others right: a contract that always fails would prove nothing.
    #expect(violated.count < StoreContract.cases.count)
  }

  @Test(
    "of downloaders finds an engine's mistake, and names it",
    arguments: [
      (FlawedDownloader.Flaw.dropsAByte, "the original bytes arrive, whatever their number"),
      (.dropsAByte, "many URLs in parallel each get their own bytes"),
      (.followsRedirects, "every status is an answer, and no redirect is followed"),
      (.throwsAtErrors, "a 401 without a credential ends, as an answer"),
      (.dropsConditions, "conditions go out as they are, and a 304 comes back as a 304 without a body"),
      (.endsShort, "a body that is cut short is an error, whether its length was told or not"),
      (.forgetsLength, "the original bytes arrive, whatever their number"),
      (.ignoresCancellation, "cancelling the task that waits for the head ends the download as cancelled"),
      (.dropsFields, "the answer's fields can be read by name, in any case"),
    ])
  func flawedDownloaders(_ flaw: FlawedDownloader.Flaw, _ broken: String) async {
    var violated: [String] = []
    for statement in DownloaderContract.cases {
      let network = ScriptedDownloader()
      do {
        try await statement.run(on: FlawedDownloader(sound: network, flaw: flaw), origin: network)
      } catch {
        violated.append(statement.name)
      }
    }
    #expect(violated.contains(broken))
    #expect(violated.count < DownloaderContract.cases.count)
  }
}
