import CacheCore
import CacheTesting
import Testing

@Suite("Contracts", .timeLimit(.minutes(30)))
struct ContractTests {
  @Test("the volatile store satisfies the contract of stores", arguments: StoreContract.cases)
  func volatileStore(_ statement: StoreContract.Case) async throws {
    try await statement.run(on: VolatileStore())
  }

  @Test("a dictionary satisfies the contract of memory stores", arguments: MemoryContract.cases)
  func dictionary(_ statement: MemoryContract.Case) throws { try statement.run(on: FlawedMemory(nil)) }

  @Test(
    "the contract of memory stores finds a flaw and names the statement",
    arguments: [
      (FlawedMemory.Flaw.keepsTheOlder, "an entry replaces the previous entry"),
      (.ignoresRevisions, "an entry is removed by its revision, and removing a missing entry has no effect"),
      (.changesAnyway, "an update keeps, removes or replaces the entry and reports it"),
      (.keepsEverything, "an emptied store has no entries and stores later ones"),
      (.listsRemoved, "the list of keys contains exactly the stored entries"),
      (.evictsTheNewest, "an entry that was just inserted is stored, whatever the store evicts for it"),
    ])
  func flawedMemories(_ flaw: FlawedMemory.Flaw, _ broken: String) {
    let violated = MemoryContract.cases.filter { statement in
      (try? statement.run(on: FlawedMemory(flaw))) == nil
    }
    #expect(violated.map(\.name).contains(broken))
    #expect(violated.count < MemoryContract.cases.count)
  }

  @Test("the scripted downloader satisfies the statements for downloaders without sockets", arguments: DownloaderContract.cases)
  func scriptedDownloader(_ statement: DownloaderContract.Case) async throws {
    let network = ScriptedDownloader()
    try await withKnownIssue("a double has no sockets") {
      try await statement.run(on: network, origin: network, within: .seconds(1_800))
    } when: {
      statement.needs.contains(.sockets)
    }
  }

  @Test("the local file downloader satisfies the statements that files can satisfy", arguments: DownloaderContract.cases)
  func folder(_ statement: DownloaderContract.Case) async throws {
    let origin = try FolderOrigin()
    defer { origin.remove() }
    try await withKnownIssue("files support only GET and HEAD, and neither fail nor wait") {
      try await statement.run(on: origin.network, origin: origin, within: .seconds(1_800))
    } when: {
      !FolderOrigin.kept.contains(statement.name)
    }
  }

  @Test("statements have different names")
  func names() {
    let names = StoreContract.cases.map(\.name) + MemoryContract.cases.map(\.name) + DownloaderContract.cases.map(\.name)
    #expect(Set(names).count == names.count)
    #expect(names.count > 20)
    #expect(StoreContract.cases.map(\.description) == StoreContract.cases.map(\.name))
  }

  @Test(
    "the contract of stores finds a flaw and names the statement",
    arguments: [
      (FlawedStore.Flaw.changesBytes, "bodies of any size are returned unchanged, with their metadata"),
      (.ignoresRevisions, "updating another revision or a missing entry has no effect and reports it"),
      (.ignoresRevisions, "an entry is removed by its revision, and removing a missing entry is not an error"),
      (.showsUncommitted, "an entry is not visible before its commit"),
      (.showsUncommitted, "an aborted or released writer does not change the stored entry"),
      (.keepsWhatIsRemoved, "an entry is removed by its revision, and removing a missing entry is not an error"),
      (.listsOtherResources, "the variants of a resource are listed without those of other resources"),
      (.losesLength, "bodies of any size are returned unchanged, with their metadata"),
      (.listsUnasked, "the list contains exactly the matching entries, with every variant and transform"),
      (.forgetsOneOfMany, "a batch read returns the same entries as single reads"),
      (.leavesOneOfMany, "a batch removal removes exactly the named entries, in any revision"),
      (.leavesOneFresh, "a batch marks exactly the named entries stale, in any revision"),
      (.countsRemoved, "a store's usage counts the stored entries, and none after removing all"),
      (.evictsTheNewest, "an entry stays stored after its own commit, whatever the store evicts for it"),
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
    // A contract that always fails would prove nothing, so a store with one flaw must satisfy other statements.
    #expect(violated.count < StoreContract.cases.count)
  }

  @Test(
    "the contract of downloaders finds a flaw and names the statement",
    arguments: [
      (FlawedDownloader.Flaw.dropsAByte, "a body of any size arrives unchanged"),
      (.dropsAByte, "parallel requests for different URLs receive their own bodies"),
      (.followsRedirects, "redirects are not followed"),
      (.throwsAtErrors, "a 401 to a request without credentials is delivered as a response"),
      (.dropsConditions, "conditional fields are sent unchanged, and a 304 is delivered without a body"),
      (.endsShort, "a truncated body is an error, with or without a declared length"),
      (.forgetsLength, "a body of any size arrives unchanged"),
      (.ignoresCancellation, "cancelling the task that waits for the head cancels the download"),
      (.dropsFields, "field names of a response are case-insensitive"),
      (.dropsRequestBodies, "a request body of known length arrives unchanged, with its length"),
      (.measuresNothing, "a response has metrics"),
      (.sharesEverything, "each of several requests with different fields or methods is sent"),
      (.sharesEverything, "each of several equal requests is sent"),
    ])
  func flawedDownloaders(_ flaw: FlawedDownloader.Flaw, _ broken: String) async {
    let statements = DownloaderContract.cases.filter { !$0.needs.contains(.sockets) }
    let (results, continuation) = AsyncStream.makeStream(of: (name: String, isKept: Bool).self)
    for statement in statements {
      // Some flaws make a statement hang, possibly the expected one. Its time limit is therefore short.
      let bound = Duration.seconds(statement.name == broken ? 5 : 600)
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
      // Statements that still hang end only at their time limit and cannot change the result.
      let isDecided = violated.contains(broken) && statements.count - kept < DownloaderContract.cases.count / 2
      if isDecided || kept + violated.count == statements.count { break }
    }
    #expect(violated.contains(broken))
    // A contract that always fails would prove nothing, so a downloader with one flaw must satisfy most statements.
    #expect(violated.count < DownloaderContract.cases.count / 2)
  }

  @Test("the contract of downloaders abandons a downloader that hangs, and reports it")
  func hangs() async throws {
    let network = ScriptedDownloader()
    let statement = try #require(DownloaderContract.cases.first)
    let error = await #expect(throws: ContractViolation.self) {
      try await statement.run(
        on: FlawedDownloader(sound: network, flaw: .neverResponds), origin: network, within: .milliseconds(50))
    }
    #expect(error?.description.contains("did not end") == true)
  }

  @Test("the contract of downloaders reports a missing capability of the origin")
  func lacks() async throws {
    let network = ScriptedDownloader()
    let statement = try #require(DownloaderContract.cases.first { $0.needs.contains(.sockets) })
    let error = await #expect(throws: ContractViolation.self) { try await statement.run(on: network, origin: network) }
    #expect(error?.description == "the statement needs an origin with sockets")
  }
}
