import CacheCore
import CacheTesting
import Dispatch
import Testing

@testable import DiskStore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Disk store: eviction order")
struct EvictionTests {
  let folder: TemporaryFolder
  let clock = ManualClock()

  init() throws { folder = try TemporaryFolder() }

  private func cache(_ eviction: any EvictionPolicy, limit: Int64? = nil) throws -> DiskCache {
    try folder.sharedCache(configuration: .init(sizeLimit: limit, eviction: eviction, clock: clock))
  }

  private func key(_ number: Int) -> CacheKey { CacheKey(resource: "\(number)", variant: "v") }

  private func fill(_ cache: DiskCache, _ numbers: Range<Int>) async throws {
    for number in numbers {
      clock.advance(by: .seconds(1))
      try await cache.store(bytes(10_000), for: key(number), metadata: metadata(at: clock.now))
    }
  }

  private func use(_ cache: DiskCache, _ numbers: Range<Int>) async throws {
    for number in numbers { _ = try await cache.bytes(key(number)) }
  }

  /// Returns the numbers of the entries whose files exist.
  private func present(_ numbers: Range<Int>) throws -> [Int] {
    let hashKey = try StoreFolder(folder.path, .system, syncsFolders: false).key
    return numbers.filter { fileExists(EntryName(key($0), hashKey: hashKey).path(below: folder.root + "/entries/")) }
  }

  @Test(
    "a scan of entries that are requested once does not evict entries in use by default, but does with LRU",
    arguments: [true, false])
  func scan(isDefault: Bool) async throws {
    let cache = try cache(isDefault ? DiskCache.Configuration().eviction : LeastRecentlyUsed(), limit: 1_100_000)
    #expect(try await cache.entryCount == 0, "the folder is listed before it is filled")
    try await fill(cache, 0..<30)
    for _ in 0..<3 { try await use(cache, 0..<30) }
    try await fill(cache, 100..<200)
    #expect(try await cache.totalSize <= 1_100_000)
    #expect(try present(0..<30).count == (isDefault ? 30 : 0))
    #expect(try present(199..<200) == [199])
  }

  @Test("LRU evicts by the exact order of uses, and LFU by their number")
  func order() async throws {
    let recent = try cache(LeastRecentlyUsed())
    #expect(try await recent.entryCount == 0, "the folder is listed before it is filled")
    try await fill(recent, 0..<40)
    var generator = SeededGenerator(state: 7)
    let order = Array(0..<40).shuffled(using: &generator)
    for number in order { try await use(recent, number..<number + 1) }
    let each = try await recent.totalSize / 40
    for left in [39, 30, 11, 1] {
      try await recent.trim(to: each * Int64(left))
      #expect(try present(0..<40) == order.suffix(left).sorted())
    }
    try await recent.removeAll()
    let frequent = try cache(LeastFrequentlyUsed())
    #expect(try await frequent.entryCount == 0, "the folder is listed before it is filled")
    try await fill(frequent, 0..<8)
    for number in 0..<8 { for _ in 0..<(number * 3 % 8) { try await use(frequent, number..<number + 1) } }
    try await frequent.trim(to: each * 4)
    #expect(try present(0..<8) == [2, 5, 4, 7].sorted())
  }

  @Test("a chosen entry is evicted even if concurrent removals have made enough space", .timeLimit(.minutes(30)))
  func removalsMeanwhile() async throws {
    // Given
    let gate = Gate(isOpen: true)
    var calls = FileCalls.system
    let remove = calls.unlinkInside
    calls.unlinkInside = { folder, name in
      let turn = DispatchSemaphore(value: 0)
      _ = gate.arrive { turn.signal() }
      turn.wait()
      return remove(folder, name)
    }
    let cache = try DiskCache(
      path: folder.path, configuration: .init(sizeLimit: nil, eviction: LeastRecentlyUsed(), clock: clock), calls: calls)
    try await fill(cache, 0..<40)
    let each = try await cache.totalSize / 40

    // When
    gate.close()
    let trimming = Task { try await cache.trim(to: each * 30) }
    await gate.arrived()
    for number in 35..<40 { try await cache.remove(key(number), ifRevision: nil) }
    gate.open()

    // Then
    #expect(try await trimming.value == 10)
    #expect(try present(0..<40) == Array(10..<35))
  }

  /// A policy that never evicts. The store must still terminate.
  private struct Keeping: EvictionPolicy {
    mutating func insert(_ slot: Int, fingerprint: Int, cost: Int) {}
    mutating func access(_ slot: Int) {}
    mutating func remove(_ slot: Int) {}
    mutating func evict(toFit cost: Int) -> Int? { nil }
  }

  @Test("a policy that never evicts keeps all entries")
  func keeping() async throws {
    let cache = try cache(Keeping(), limit: 30_000)
    try await fill(cache, 0..<5)
    #expect(try await cache.trim(to: 0) == 0)
    #expect(try await cache.entryCount == 5)
  }

  /// A policy that names slots that are unused or already evicted.
  private struct Miscounting: EvictionPolicy {
    var slots: [Int]
    mutating func insert(_ slot: Int, fingerprint: Int, cost: Int) {}
    mutating func access(_ slot: Int) {}
    mutating func remove(_ slot: Int) {}
    mutating func evict(toFit cost: Int) -> Int? { slots.popLast() }
  }

  @Test(
    "a policy that names wrong slots does not evict other entries", arguments: [-1, 5, .max, .min, 2])
  func miscounting(slot: Int) async throws {
    let cache = try cache(Miscounting(slots: [slot, 2]))
    try await fill(cache, 0..<5)
    #expect(try await cache.trim(to: 0) == 1)
    try await fill(cache, 5..<8)
    #expect(try await cache.entryCount == 7)
  }

  @Test("entries used last before the folder was opened are evicted last under every policy", arguments: [0, 1])
  func reopened(policy: Int) async throws {
    func policyValue() -> any EvictionPolicy { policy == 0 ? S3FIFO() : LeastRecentlyUsed() }
    let first = try cache(policyValue())
    try await fill(first, 0..<10)
    clock.advance(by: .seconds(61))
    try await use(first, 2..<5)
    await first.close()
    let second = try cache(policyValue())
    let each = try await second.totalSize / 10
    try await second.trim(to: each * 3)
    #expect(try present(0..<10) == [2, 3, 4])
  }

  @Test("the number of uses before the folder was opened comes from the index file and protects entries from a scan")
  func oftenUsed() async throws {
    let count = IndexFile.fewest
    let first = try cache(S3FIFO())
    #expect(try await first.entryCount == 0, "the folder is listed before it is filled")
    for number in 0..<count { try await first.store(bytes(10), for: key(number), metadata: metadata(at: clock.now)) }
    for _ in 0..<3 { try await use(first, 0..<50) }
    for number in 0..<count where number >= 50 { try await use(first, number..<number + 1) }
    await first.close()
    let second = try cache(S3FIFO())
    let each = try await second.totalSize / Int64(count)
    try await second.trim(to: each * 60)
    #expect(try present(0..<50).count == 50)
  }

  @Test("an entry that another process has used is spared without a list", arguments: [true, false])
  func usedByOthers(isMember: Bool) async throws {
    let one = try cache(LeastRecentlyUsed())
    try await fill(one, 0..<10)
    let each = try await one.totalSize / 10
    clock.advance(by: .seconds(61))
    let other = try cache(LeastRecentlyUsed())
    let used = isMember ? 0 : 1
    try await use(other, used..<used + 1)
    #expect(try await one.trim(to: each * 5) == 5)
    #expect(try present(0..<10).contains(used))
    #expect(try present(0..<10).count == 5)
    #expect(try await one.trim(to: 0) == 5)
    #expect(folder.entryFiles.isEmpty)
  }

  @Test("without changes by others, neither a sweep nor a trim lists the files")
  func withoutList() async throws {
    let cache = try cache(LeastRecentlyUsed(), limit: 110_000)
    try await fill(cache, 0..<5)
    #expect(try await cache.entryCount == 5)
    // Only a list counts a file that was added without incrementing the counters.
    let strange = folder.root + "/entries/00/\(String(repeating: "0", count: 32)).e"
    try FileManager.default.createDirectory(atPath: folder.root + "/entries/00", withIntermediateDirectories: true)
    try put(bytes(50_000), strange)
    try await fill(cache, 5..<12)
    #expect(try await cache.totalSize <= 110_000)
    #expect(cache.counters.evictions[.size, default: 0] > 0)
    try await cache.trim(to: 30_000)
    #expect(try await cache.totalSize <= 30_000)
    #expect(fileExists(strange))
    #expect(try await cache.entries().count == (try await cache.entryCount))
    _ = try await cache.removeExpired()
    #expect(try await cache.entries().count == (try await cache.entryCount) - 1, "the list counts it")
  }

  @Test("another cache sees the evictions of a sweep and later stores")
  func others() async throws {
    let one = try cache(LeastRecentlyUsed())
    let other = try cache(LeastRecentlyUsed())
    try await fill(one, 0..<10)
    #expect(try await other.entryCount == 10)
    try await one.trim(to: 0)
    #expect(try await other.entryCount == 0)
    try await fill(one, 3..<4)
    #expect(try await other.bytes(key(3)) == bytes(10_000))
  }

  @Test("a trim removes a resource's folder with its last variant and does not follow links")
  func folders() async throws {
    let cache = try cache(LeastRecentlyUsed())
    for variant in ["", "a", "b"] {
      try await cache.store(bytes(10), for: CacheKey(resource: "r", variant: variant), metadata: metadata())
    }
    let shard = try #require(try FileManager.default.contentsOfDirectory(atPath: folder.root + "/entries").first)
    #expect(try await cache.trim(to: 0) == 3)
    #expect(folder.files(below: folder.root + "/entries").isEmpty)
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.root + "/entries/" + shard).isEmpty)
    try await cache.store(bytes(10), for: CacheKey(resource: "r"), metadata: metadata())
    try FileManager.default.moveItem(atPath: folder.root + "/entries/" + shard, toPath: folder.path + "/outside")
    try FileManager.default.createSymbolicLink(
      atPath: folder.root + "/entries/" + shard, withDestinationPath: folder.path + "/outside")
    #expect(try await cache.trim(to: 0) == 0)
    #expect(folder.files(below: folder.path + "/outside").count == 1)
    #expect(cache.counters.failedRemovals == 0)
  }
}
