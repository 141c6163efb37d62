import CacheCore
import CacheTesting
import DiskStore
import StoreComposition
import Testing

@Suite("The contract of stores, on stores made of stores")
struct CompositionContractTests {
  @Test("holds for layers that are written through", arguments: StoreContract.cases)
  func through(_ statement: StoreContract.Case) async throws {
    let folder = try TemporaryFolder()
    try await statement.run(on: LayeredStore([VolatileStore(), DiskCache(path: folder.path)]))
    withExtendedLifetime(folder) {}
  }

  @Test("holds for layers that are written back", arguments: StoreContract.cases)
  func back(_ statement: StoreContract.Case) async throws {
    let folder = try TemporaryFolder()
    let store = try LayeredStore([VolatileStore(), DiskCache(path: folder.path)], configuration: .init(writing: .back))
    try await statement.run(on: store)
    await store.flush()
    withExtendedLifetime(folder) {}
  }

  @Test(
    "holds where the first layer takes nothing, the second fails, and the last can only be read", arguments: StoreContract.cases)
  func lame(_ statement: StoreContract.Case) async throws {
    let failing = VolatileStore()
    failing.refusesWrites = true
    try await statement.run(on: LayeredStore([NullStore(), failing, VolatileStore(), ReadOnlyStore(VolatileStore())]))
  }

  /// What needs no entry holds; nothing else can, where nothing is taken.
  private static let withoutEntries: Set<String> = [
    "what was never stored is a miss, and no error"
  ]

  @Test("holds for a store that takes nothing as far as it needs no entry", arguments: StoreContract.cases)
  func null(_ statement: StoreContract.Case) async throws {
    try await withKnownIssue("the store takes no entries") {
      try await statement.run(on: NullStore())
    } when: {
      !Self.withoutEntries.contains(statement.name)
    }
  }

  @Test("holds for a store that can only be read as far as it needs no entry", arguments: StoreContract.cases)
  func readOnly(_ statement: StoreContract.Case) async throws {
    try await withKnownIssue("the store takes no entries") {
      try await statement.run(on: ReadOnlyStore(VolatileStore()))
    } when: {
      !Self.withoutEntries.contains(statement.name)
    }
  }

  @Test("names only statements that there are")
  func names() {
    #expect(Set(StoreContract.cases.map(\.name)).isSuperset(of: Self.withoutEntries))
  }
}
