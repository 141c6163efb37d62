import CacheCore
import CacheTesting
import DiskStore
import Testing

@Suite("Disk store: the store contract")
struct StoreContractTests {
  @Test("the contract holds", arguments: StoreContract.cases)
  func contract(_ statement: StoreContract.Case) async throws {
    let folder = try TemporaryFolder()
    try await statement.run(on: DiskCache(path: folder.path))
    withExtendedLifetime(folder) {}
  }

  @Test("the contract holds with one thread for all file operations and every commit flushed", arguments: StoreContract.cases)
  func contractWithOneThread(_ statement: StoreContract.Case) async throws {
    let folder = try TemporaryFolder()
    try await statement.run(
      on: DiskCache(path: folder.path, configuration: .init(sizeLimit: nil, durability: .fileAndFolder, ioWidth: 1)))
    withExtendedLifetime(folder) {}
  }

  @Test("the contract holds with a small limit", arguments: StoreContract.cases)
  func contractWithSmallLimit(_ statement: StoreContract.Case) async throws {
    let folder = try TemporaryFolder()
    try await statement.run(on: DiskCache(path: folder.path, configuration: .init(sizeLimit: 5 << 20)))
    withExtendedLifetime(folder) {}
  }
}
