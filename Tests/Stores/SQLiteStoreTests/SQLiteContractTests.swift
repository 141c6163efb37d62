#if SQLite
import CacheCore
import CacheTesting
import SQLiteStore
import Testing

@Suite("SQLite store: the store contract")
struct SQLiteContractTests {
  @Test("the contract holds", arguments: StoreContract.cases)
  func contract(_ statement: StoreContract.Case) async throws {
    let folder = try TemporaryFolder()
    let cache = try SQLiteCache(path: folder.path)
    try await statement.run(on: cache)
    await cache.close()
    withExtendedLifetime(folder) {}
  }

  @Test("the contract holds with one connection for all reads and every commit flushed", arguments: StoreContract.cases)
  func contractWithOneReader(_ statement: StoreContract.Case) async throws {
    let folder = try TemporaryFolder()
    let cache = try SQLiteCache(path: folder.path, configuration: .init(sizeLimit: nil, durability: .commit, readers: 1))
    try await statement.run(on: cache)
    await cache.close()
    withExtendedLifetime(folder) {}
  }

  @Test("the contract holds with a small limit", arguments: StoreContract.cases)
  func contractWithSmallLimit(_ statement: StoreContract.Case) async throws {
    let folder = try TemporaryFolder()
    let cache = try SQLiteCache(path: folder.path, configuration: .init(sizeLimit: 5 << 20))
    try await statement.run(on: cache)
    await cache.close()
    withExtendedLifetime(folder) {}
  }
}
#endif
