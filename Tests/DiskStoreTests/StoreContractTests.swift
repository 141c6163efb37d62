import CacheCore
import CacheTesting
import DiskStore
import Testing

@Suite("The contract of stores, on a disk")
struct StoreContractTests {
  @Test("holds", arguments: StoreContract.cases)
  func contract(_ statement: StoreContract.Case) async throws {
    let folder = try TemporaryFolder()
    try await statement.run(on: DiskCache(path: folder.path))
    withExtendedLifetime(folder) {}
  }

  @Test("holds also with one thread for all file operations, and every commit flushed", arguments: StoreContract.cases)
  func contractWithOneThread(_ statement: StoreContract.Case) async throws {
    let folder = try TemporaryFolder()
    try await statement.run(
      on: DiskCache(path: folder.path, configuration: .init(sizeLimit: nil, durability: .fileAndFolder, ioWidth: 1)))
    withExtendedLifetime(folder) {}
  }
}
