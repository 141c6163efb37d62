import CacheCore
import CacheTesting
import DiskStore
import StoreComposition
import Testing

@Suite("Store composition: the store contract")
struct CompositionContractTests {
  @Test("the contract holds for layers with writing through", arguments: StoreContract.cases)
  func through(_ statement: StoreContract.Case) async throws {
    let folder = try TemporaryFolder()
    try await statement.run(on: LayeredStore([VolatileStore(), DiskCache(path: folder.path)]))
    withExtendedLifetime(folder) {}
  }

  @Test("the contract holds for layers with small limits", arguments: StoreContract.cases)
  func small(_ statement: StoreContract.Case) async throws {
    let folders = [try TemporaryFolder(), try TemporaryFolder()]
    let layers = try folders.map { try DiskCache(path: $0.path, configuration: .init(sizeLimit: 5 << 20)) }
    try await statement.run(on: LayeredStore(layers))
    withExtendedLifetime(folders) {}
  }

  @Test("the contract holds for layers with writing back", arguments: StoreContract.cases)
  func back(_ statement: StoreContract.Case) async throws {
    let folder = try TemporaryFolder()
    let store = try LayeredStore([VolatileStore(), DiskCache(path: folder.path)], configuration: .init(writing: .back))
    try await statement.run(on: store)
    await store.flush()
    withExtendedLifetime(folder) {}
  }

  @Test(
    "the contract holds if the first layer is empty, the second fails and the last is read-only", arguments: StoreContract.cases)
  func lame(_ statement: StoreContract.Case) async throws {
    let failing = VolatileStore()
    failing.refusesWrites = true
    try await statement.run(on: LayeredStore([NullStore(), failing, VolatileStore(), ReadOnlyStore(VolatileStore())]))
  }

  /// The cases that need no entry. The others cannot hold for a store that accepts none.
  private static let withoutEntries: Set<String> = [
    "a key without an entry is a miss, not an error"
  ]

  @Test("the contract holds for a null store in the cases that need no entry", arguments: StoreContract.cases)
  func null(_ statement: StoreContract.Case) async throws {
    try await withKnownIssue("the store accepts no entries") {
      try await statement.run(on: NullStore())
    } when: {
      !Self.withoutEntries.contains(statement.name)
    }
  }

  @Test("the contract holds for a read-only store in the cases that need no entry", arguments: StoreContract.cases)
  func readOnly(_ statement: StoreContract.Case) async throws {
    try await withKnownIssue("the store accepts no entries") {
      try await statement.run(on: ReadOnlyStore(VolatileStore()))
    } when: {
      !Self.withoutEntries.contains(statement.name)
    }
  }

  @Test("the exceptions name only existing cases")
  func names() {
    #expect(Set(StoreContract.cases.map(\.name)).isSuperset(of: Self.withoutEntries))
  }
}
