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

@Suite("Disk store: an entry that was just stored", .timeLimit(.minutes(30)))
struct JustStoredTests {
  enum Policy: CaseIterable {
    case s3FIFO, leastRecentlyUsed, leastFrequentlyUsed, oldestFirst, newestFirst

    var made: any EvictionPolicy {
      switch self {
      case .s3FIFO: S3FIFO()
      case .leastRecentlyUsed: LeastRecentlyUsed()
      case .leastFrequentlyUsed: LeastFrequentlyUsed()
      case .oldestFirst: Own(evictsNewest: false)
      case .newestFirst: Own(evictsNewest: true)
      }
    }
  }

  /// A user's policy, which evicts by the order of insertion alone.
  private struct Own: EvictionPolicy {
    let evictsNewest: Bool
    private var slots: [Int] = []

    init(evictsNewest: Bool) { self.evictsNewest = evictsNewest }

    mutating func insert(_ slot: Int, fingerprint: Int, cost: Int) { slots.append(slot) }
    mutating func access(_ slot: Int) {}
    mutating func replace(_ slot: Int, fingerprint: Int, cost: Int) {}
    mutating func remove(_ slot: Int) { slots.removeAll { $0 == slot } }
    mutating func evict(toFit cost: Int) -> Int? {
      slots.isEmpty ? nil : evictsNewest ? slots.removeLast() : slots.removeFirst()
    }
  }

  let folder: TemporaryFolder
  let clock = ManualClock()

  init() throws { folder = try TemporaryFolder() }

  private func cache(_ policy: Policy, limit: Int64, calls: FileCalls = .system) throws -> DiskCache {
    try folder.sharedCache(configuration: .init(sizeLimit: limit, eviction: policy.made, clock: clock), calls: calls)
  }

  private func key(_ number: Int) -> CacheKey { CacheKey(resource: "\(number)") }

  private func store(_ number: Int, _ length: Int, in cache: DiskCache) async throws {
    clock.advance(by: .seconds(1))
    try await cache.store(bytes(length), for: key(number), metadata: metadata(at: clock.now))
  }

  /// Returns the numbers of the entries that are there after the sweeps in progress. It is no use of them.
  private func present(in cache: DiskCache) async throws -> Set<Int> {
    // The usage is counted after them.
    _ = try await cache.usage()
    return Set(try await cache.entries().compactMap { Int($0.key.resource) })
  }

  @Test(
    "stays through its own sweep, however small the cache", arguments: Policy.allCases, [2, 3, 4, 5, 6, 8, 10, 20])
  func alone(_ policy: Policy, _ room: Int) async throws {
    let length = 36_000
    let cache = try cache(policy, limit: Int64(room) * 40_960)
    for number in 0..<60 {
      try await store(number, length, in: cache)
      #expect(try await present(in: cache).contains(number))
    }
    let last = try await present(in: cache)
    #expect(last.count >= room * 9 / 10 - 1)
    // The others evict the oldest entries.
    if policy != .newestFirst { #expect(last == Set((60 - last.count)..<60)) }
  }

  @Test("stays after further stores and reads, and the first entries do not stay forever", arguments: [4, 6, 8, 10])
  func lastOnes(_ room: Int) async throws {
    let cache = try cache(.s3FIFO, limit: Int64(room) * 40_960)
    for number in 0..<100 {
      try await store(number, 36_000, in: cache)
      #expect(try await cache.bytes(key(number)) != nil)
      _ = try await cache.usage()
      if number > 0 { #expect(try await cache.bytes(key(number - 1)) != nil) }
    }
    let last = try await present(in: cache)
    #expect(last.isSuperset(of: [98, 99]))
    #expect(last.allSatisfy { $0 >= 100 - 2 * room })
  }

  @Test("20 named entries of 100 kB in 1 MiB: each is there after its store, and the last ones stay")
  func named() async throws {
    let cache = try DiskCache(path: folder.path, configuration: .init(sizeLimit: 1 << 20))
    for number in 0..<20 {
      try await cache.store(bytes(100_000), for: "blob-\(number)")
      _ = try await cache.usage()
      #expect(try await cache.data(for: "blob-\(number)") == bytes(100_000))
    }
    for number in 13..<20 { #expect(try await cache.data(for: "blob-\(number)") != nil) }
  }

  @Test("is replaced under the same key or gets new metadata, and stays, although it is the oldest", arguments: Policy.allCases)
  func replaced(_ policy: Policy) async throws {
    let cache = try cache(policy, limit: 10 * 40_960)
    for number in 0..<9 { try await store(number, 36_000, in: cache) }

    try await store(0, 80_000, in: cache)
    #expect(try await present(in: cache).contains(0))

    for number in 10..<13 { try await store(number, 36_000, in: cache) }
    let oldest = try #require(try await present(in: cache).min())
    let stored = try #require(await cache.entry(for: key(oldest), range: 0..<0)).metadata
    var large = metadata(at: clock.now, padding: 150_000)
    large.revision = stored.revision
    let evictions = cache.counters.evictions[.size, default: 0]
    #expect(try await cache.updateMetadata(of: key(oldest), to: large, ifRevision: stored.revision))
    #expect(try await present(in: cache).contains(oldest))
    #expect(cache.counters.evictions[.size, default: 0] > evictions)
  }

  @Test("stays if others are stored at the same time, as long as all of them fit")
  func concurrent() async throws {
    for policy in [Policy.s3FIFO, .leastRecentlyUsed, .leastFrequentlyUsed, .oldestFirst] {
      let cache = try cache(policy, limit: 12 * 40_960)
      for number in 0..<12 { try await store(number, 36_000, in: cache) }
      try await withThrowingTaskGroup { group in
        for number in 12..<20 { group.addTask { try await store(number, 36_000, in: cache) } }
        try await group.waitForAll()
      }
      #expect(try await present(in: cache).isSuperset(of: 12..<20))
      #expect(try await cache.totalSize <= 12 * 40_960)
      try await cache.removeAll()
    }
  }

  @Test("stays through the sweep in progress and through its own", arguments: Policy.allCases)
  func during(_ policy: Policy) {
    let index = EntryIndex(policy.made, limit: 100)
    _ = index.endList([:])
    let names = (0..<13).map { EntryName(key($0), hashKey: SipHash.Key(first: 1, second: 2)) }
    func store(_ number: Int) { index.stored(names[number], size: 10, at: Timestamp(nanoseconds: Int64(number))) }
    func evict() {
      let size = index.known.size
      for victim in index.choose(size - 90, most: 10, sparingRecentUnless: size - 100) { index.evicted(victim, .removed) }
    }
    for number in 0..<11 { store(number) }

    index.sweep {
      evict()
      #expect(index.use(names[10]) != nil)
      for number in 11..<13 { store(number) }
      evict()
    }
    #expect(index.known.size == 90)
    #expect(names[10...].allSatisfy { index.use($0) != nil })
    index.sweep { evict() }
    #expect(names[11...].allSatisfy { index.use($0) != nil })
  }

  @Test("leaves in the order of the stores if those at the same time do not all fit, and the last one stays")
  func tooMany() throws {
    let index = EntryIndex(Own(evictsNewest: true), limit: 100)
    _ = index.endList([:])
    let names = (0..<5).map { EntryName(key($0), hashKey: SipHash.Key(first: 1, second: 2)) }
    for (number, name) in names.enumerated() { index.stored(name, size: 60, at: Timestamp(nanoseconds: Int64(number))) }
    index.sweep {
      let victims = index.choose(210, most: 10, sparingRecentUnless: 200)
      #expect(victims.map(\.name) == Array(names.prefix(4)))
      for victim in victims { index.evicted(victim, .removed) }
    }
    #expect(index.known.count == 1 && index.use(names[4]) != nil)
  }

  @Test("stays in a folder of two caches that store in turn", arguments: Policy.allCases)
  func twoCaches(_ policy: Policy) async throws {
    let caches = [try cache(policy, limit: 8 * 40_960), try cache(policy, limit: 8 * 40_960)]
    for number in 0..<40 {
      let own = caches[number % 2]
      try await store(number, 36_000, in: own)
      #expect(try await present(in: own).contains(number))
    }
    #expect(try await caches[0].totalSize <= 8 * 40_960)
  }

  @Test("stays although another cache had chosen its predecessor for eviction")
  func storedAgain() async throws {
    // Given: a cache that has chosen ten of twenty entries and waits with the first removal.
    let gate = Gate()
    var calls = FileCalls.system
    let remove = calls.unlinkInside
    calls.unlinkInside = { folder, name in
      let turn = DispatchSemaphore(value: 0)
      _ = gate.arrive { turn.signal() }
      turn.wait()
      return remove(folder, name)
    }
    let one = try cache(.leastRecentlyUsed, limit: 1 << 30, calls: calls)
    for number in 0..<20 { try await store(number, 1_000, in: one) }
    let size = try await one.totalSize
    let trimming = Task { try await one.trim(to: size / 2) }
    await gate.arrived()

    // When: another cache stores them again.
    let other = try cache(.leastRecentlyUsed, limit: 1 << 30)
    for number in 0..<10 { try await store(number, 1_000, in: other) }
    gate.open()
    _ = try await trimming.value

    // Then: only the entries of the folder whose removal had begun may be gone. The folders are chosen by a random key: more than
    // four of ten entries in one of 256 folders happen once in many million runs.
    #expect(try await present(in: other).intersection(0..<10).count >= 6)
  }

  @Test("can be removed by a trim, which evicts every entry")
  func trimmed() async throws {
    let cache = try cache(.s3FIFO, limit: 1 << 20)
    for number in 0..<3 { try await store(number, 1_000, in: cache) }
    #expect(try await cache.trim(to: 0) == 3)
  }
}
