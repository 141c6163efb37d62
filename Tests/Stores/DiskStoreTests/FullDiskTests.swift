import CacheCore
import CacheTesting
import DiskStore
import Testing

@Suite("Disk store: a full disk")
struct FullDiskTests {
  let folder: TemporaryFolder
  let clock = ManualClock()
  let faults = FaultyFileSystem()
  let cache: DiskCache

  init() async throws {
    folder = try TemporaryFolder()
    cache = try DiskCache(path: folder.path, configuration: .init(sizeLimit: nil, clock: clock), calls: faults.calls)
    for number in 0..<40 { try await store(number) }
    faults.set {
      $0.room = 0
      $0.givesBack = true
    }
  }

  private func store(_ number: Int) async throws {
    clock.advance(by: .seconds(1))
    try await cache.store(bytes(10_000), for: CacheKey(resource: "\(number)"), metadata: metadata(at: clock.now))
  }

  @Test("a store that fails evicts the least recently used entries, and later stores succeed")
  func room() async throws {
    #expect(await failure { try await store(40) }?.code == .diskFull)
    // The count is read after the eviction.
    #expect(try await cache.entryCount == 36)
    #expect(cache.counters.fullDisk == 1)
    #expect(cache.counters.evictions == [.fullDisk: 4])
    for number in 41..<44 { try await store(number) }
    for number in [0, 3, 40] { #expect(try await cache.entry(for: CacheKey(resource: "\(number)")) == nil) }
    for number in [4, 39, 41, 43] { #expect(try await cache.entry(for: CacheKey(resource: "\(number)")) != nil) }
    #expect(folder.temporaryFiles.isEmpty)
  }

  @Test("an update that does not fit makes space and leaves the entry unchanged")
  func refresh() async throws {
    let key = CacheKey(resource: "39")
    let stored = try #require(try await cache.entry(for: key)).metadata
    #expect(
      await failure { _ = try await cache.updateMetadata(of: key, to: stored, ifRevision: stored.revision) }?.code == .diskFull)
    #expect(try await cache.entryCount == 36)
    #expect(try await cache.updateMetadata(of: key, to: stored, ifRevision: stored.revision))
    #expect(try await cache.entry(for: key)?.metadata == stored)
  }

  @Test("a store without entries evicts nothing and throws each time")
  func empty() async throws {
    try await cache.removeAll()
    faults.set { $0.room = 0 }
    for _ in 0..<3 { #expect(await failure { try await store(50) }?.code == .diskFull) }
    #expect(try await cache.entryCount == 0)
    #expect(cache.counters.fullDisk == 3)
    #expect(cache.counters.evictions.isEmpty)
  }
}
