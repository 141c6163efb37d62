import CacheCore
import CacheTesting
import Testing

@Suite("The contracts", .timeLimit(.minutes(30)))
struct ContractTests {
  @Test("of stores is kept by the volatile store", arguments: StoreContract.cases)
  func volatileStore(_ statement: StoreContract.Case) async throws {
    try await statement.run(on: VolatileStore())
  }

  @Test("of memory stores is kept by a dictionary", arguments: MemoryContract.cases)
  func dictionary(_ statement: MemoryContract.Case) throws { try statement.run(on: FlawedMemory(nil)) }

  @Test(
    "of memory stores finds a store's mistake, and names it",
    arguments: [
      (FlawedMemory.Flaw.keepsTheOlder, "an entry replaces the one before it"),
      (.ignoresRevisions, "an entry is removed by its revision, and to remove what is not there does nothing"),
      (.changesAnyway, "what a change keeps, removes or replaces is kept, removed or replaced, and said so"),
      (.keepsEverything, "a store that was emptied holds nothing, and keeps what comes after"),
      (.listsRemoved, "the list of keys has what is there, and nothing else"),
    ])
  func flawedMemories(_ flaw: FlawedMemory.Flaw, _ broken: String) {
    let violated = MemoryContract.cases.filter { statement in
      (try? statement.run(on: FlawedMemory(flaw))) == nil
    }
    #expect(violated.map(\.name).contains(broken))
    #expect(violated.count < MemoryContract.cases.count)
  }

  @Test("of downloaders is kept by the scripted downloader, as far as that needs no wire", arguments: DownloaderContract.cases)
  func scriptedDownloader(_ statement: DownloaderContract.Case) async throws {
    let network = ScriptedDownloader()
    try await withKnownIssue("a double makes its answers up, each for its own request") {
      try await statement.run(on: network, origin: network, within: .seconds(1_800))
    } when: {
      statement.needs.contains(.sockets)
    }
  }

  @Test("of downloaders is kept by a folder as the network, as far as files can answer", arguments: DownloaderContract.cases)
  func folder(_ statement: DownloaderContract.Case) async throws {
    let origin = try FolderOrigin()
    defer { origin.remove() }
    try await withKnownIssue("files answer GET and HEAD, and neither fail nor wait") {
      try await statement.run(on: origin.network, origin: origin, within: .seconds(1_800))
    } when: {
      !FolderOrigin.kept.contains(statement.name)
    }
  }

  @Test("have statements that can be told apart")
  func names() {
    let names = StoreContract.cases.map(\.name) + MemoryContract.cases.map(\.name) + DownloaderContract.cases.map(\.name)
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
      (.listsUnasked, "the list of what is stored has the entries that are asked for, in every form, and no others"),
      (.forgetsOneOfMany, "several entries that are asked for at once are those that one by one would be found, and no others"),
      (.countsRemoved, "a store that counts its entries counts those that were stored, and none after removing all"),
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
      (.followsRedirects, "no redirect is followed"),
      (.throwsAtErrors, "a 401 without a credential ends, as an answer"),
      (.dropsConditions, "conditions go out as they are, and a 304 comes back as a 304 without a body"),
      (.endsShort, "a body that is cut short is an error, whether its length was told or not"),
      (.forgetsLength, "the original bytes arrive, whatever their number"),
      (.ignoresCancellation, "cancelling the task that waits for the head ends the download as cancelled"),
      (.dropsFields, "the answer's fields can be read by name, in any case"),
      (.dropsRequestBodies, "a body of a known length arrives as it was, with its length told"),
      (.measuresNothing, "an answer is measured"),
      (.sharesEverything, "each of several requests that differ in a field or in the method is sent"),
      (.sharesEverything, "each of several equal requests is sent"),
    ])
  func flawedDownloaders(_ flaw: FlawedDownloader.Flaw, _ broken: String) async {
    let statements = DownloaderContract.cases.filter { !$0.needs.contains(.sockets) }
    let (results, continuation) = AsyncStream.makeStream(of: (name: String, isKept: Bool).self)
    for statement in statements {
      // Some flaws make a statement hang. The one that is expected to be violated may show it that way, so its bound is short.
      let bound = Duration.seconds(statement.name == broken ? 5 : 60)
      Task {
        let network = ScriptedDownloader()
        do {
          try await statement.run(on: FlawedDownloader(sound: network, flaw: flaw), origin: network, within: bound)
          continuation.yield((statement.name, true))
        } catch {
          continuation.yield((statement.name, false))
        }
      }
    }
    var (kept, violated) = (0, [String]())
    for await result in results {
      if result.isKept { kept += 1 } else { violated.append(result.name) }
      // Statements that hang would end only at their bound, and cannot change the verdict any more.
      let isDecided = violated.contains(broken) && statements.count - kept < DownloaderContract.cases.count / 2
      if isDecided || kept + violated.count == statements.count { break }
    }
    #expect(violated.contains(broken))
    // An engine with one mistake keeps most statements: a contract that always fails would prove nothing.
    #expect(violated.count < DownloaderContract.cases.count / 2)
  }

  @Test("of downloaders gives an engine up that hangs, and says so")
  func hangs() async throws {
    let network = ScriptedDownloader()
    let statement = try #require(DownloaderContract.cases.first)
    let error = await #expect(throws: ContractViolation.self) {
      try await statement.run(
        on: FlawedDownloader(sound: network, flaw: .neverAnswers), origin: network, within: .milliseconds(50))
    }
    #expect(error?.description.contains("has not ended") == true)
  }

  @Test("of downloaders says what an origin lacks")
  func lacks() async throws {
    let network = ScriptedDownloader()
    let statement = try #require(DownloaderContract.cases.first { $0.needs.contains(.sockets) })
    let error = await #expect(throws: ContractViolation.self) { try await statement.run(on: network, origin: network) }
    #expect(error?.description == "it needs an origin with sockets")
  }
}
