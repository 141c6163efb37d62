import CacheCore
import CacheTesting
import DiskStore
import HTTPTypes
import Testing

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Disk store: size limit and recency")
struct SizeTests {
  let folder: TemporaryFolder
  let clock = ManualClock()

  init() throws { folder = try TemporaryFolder() }

  private func cache(limit: Int64?) throws -> DiskCache {
    try DiskCache(path: folder.path, configuration: .init(sizeLimit: limit, eviction: LeastRecentlyUsed(), clock: clock))
  }

  private func key(_ number: Int) -> CacheKey { CacheKey(resource: "\(number)") }

  private func fill(_ cache: DiskCache, _ numbers: Range<Int>, length: Int = 11_000) async throws {
    for number in numbers {
      clock.advance(by: .seconds(1))
      try await cache.store(bytes(length), for: key(number), metadata: metadata(at: clock.now))
    }
  }

  private func present(_ cache: DiskCache, _ numbers: Range<Int>) async throws -> [Int] {
    var found: [Int] = []
    for number in numbers where try await cache.variants(of: "\(number)").isEmpty == false { found.append(number) }
    return found
  }

  @Test("total size and count match the files after stores, updates, replacements and removals")
  func accounting() async throws {
    let cache = try cache(limit: nil)
    #expect(try await cache.totalSize == 0)
    try await fill(cache, 0..<10)
    try await fill(cache, 0..<3, length: 200_000)
    let stored = try #require(try await cache.entry(for: key(5))).metadata
    for _ in 0..<5 { #expect(try await cache.updateMetadata(of: key(5), to: stored, ifRevision: stored.revision)) }
    try await cache.remove(key(7), ifRevision: nil)
    let sum = folder.allocatedSize
    #expect(try await cache.totalSize == sum)
    #expect(try await cache.entryCount == 9)
    let other = try self.cache(limit: nil)
    #expect(try await other.totalSize == sum)
    try await cache.removeAll()
    #expect(try await cache.totalSize == 0)
    #expect(try await other.entryCount == 0)
  }

  @Test("each store enforces the limit down to 90 %, the least recently used entries first")
  func limit() async throws {
    let cache = try cache(limit: 124_000)
    try await fill(cache, 0..<9)
    #expect(try await cache.entryCount == 9)
    clock.advance(by: .seconds(1))
    _ = try await cache.bytes(key(0))
    _ = try await cache.bytes(key(2))
    try await fill(cache, 9..<11)
    #expect(try await cache.totalSize <= 111_600)
    let left = try await present(cache, 0..<11)
    #expect(left.contains(0) && left.contains(2) && left.contains(10))
    #expect(!left.contains(1) && !left.contains(3))
    #expect(cache.counters.evictions[.size] == 11 - left.count)
  }

  @Test("metadata updates count toward the limit, so updates alone stay within it")
  func onlyUpdates() async throws {
    // Given
    let limit: Int64 = 124_000
    let cache = try cache(limit: limit)
    try await fill(cache, 0..<10)
    #expect(try await cache.entryCount == 10)

    // When
    for round in 0..<200 {
      guard let stored = try await cache.entry(for: key(round % 10))?.metadata else { continue }
      #expect(try await cache.updateMetadata(of: key(round % 10), to: stored, ifRevision: stored.revision))
      #expect(try await cache.totalSize <= limit)
    }

    // Then
    #expect(folder.allocatedSize <= limit)
    #expect((1..<10).contains(cache.counters.evictions[.size, default: 0]))
  }

  @Test("stores that are faster than removals do not exceed the limit by more than a fifth")
  func slowRemovals() async throws {
    // Given
    var calls = FileCalls.system
    let remove = calls.unlinkInside
    calls.unlinkInside = { folder, name in
      // Simulates a slow disk. It is not a wait of the test.
      usleep(5_000)
      return remove(folder, name)
    }
    let limit: Int64 = 1_000_000
    let cache = try DiskCache(path: folder.path, configuration: .init(sizeLimit: limit, ioWidth: 8), calls: calls)
    var largest: Int64 = 0

    // When
    for number in 0..<400 {
      try await cache.store(bytes(10_000), for: key(number), metadata: metadata())
      largest = max(largest, folder.allocatedSize)
    }

    // Then
    #expect(largest <= limit / 5 * 6, "\(largest)")
    // An eviction is counted when its sweep ends. The sum waits for the sweep in progress.
    _ = try await cache.totalSize
    #expect(cache.counters.evictions[.size, default: 0] > 200)
  }

  @Test("a limit of any size is enforced", arguments: [0, 1, 30_000, 64_000, 250_000] as [Int64])
  func everyLimit(limit: Int64) async throws {
    let cache = try DiskCache(
      path: folder.path, configuration: .init(sizeLimit: limit, clock: clock))
    for number in 0..<40 {
      clock.advance(by: .seconds(1))
      _ = await failure { try await cache.store(bytes(number * 300), for: key(number), metadata: metadata(at: clock.now)) }
      #expect(try await cache.totalSize <= limit)
    }
    let sum = folder.allocatedSize
    #expect(sum <= limit)
  }

  @Test("limits, sizes and ranges at the ends of the number range work")
  func extremes() async throws {
    let cache = try DiskCache(
      path: folder.path,
      configuration: .init(sizeLimit: .max, entrySizeLimit: .max, expiration: .after(.seconds(Int64.max)), clock: clock))
    try await fill(cache, 0..<3)
    #expect(try await cache.trim(to: .max) == 0)
    for range in [Int64.min..<Int64.max, Int64.min..<(-1), Int64.max - 1..<Int64.max, 10_999..<Int64.max] {
      let wanted = range.clamped(to: 0..<11_000)
      let body = try #require(try await cache.entry(for: key(1), range: range)).body
      #expect(try await body.collect() == bytes(11_000)[Int(wanted.lowerBound)..<Int(wanted.upperBound)])
    }
    #expect(try await cache.trim(to: .min) == 3)
    #expect(try await cache.totalSize == 0)
  }

  @Test("a trim removes the least recently used entries, and no more than needed")
  func trim() async throws {
    let cache = try cache(limit: nil)
    try await fill(cache, 0..<10)
    clock.advance(by: .seconds(1))
    _ = try await cache.bytes(key(1))
    let each = try await cache.totalSize / 10
    #expect(try await cache.trim(to: each * 4) == 6)
    #expect(try await present(cache, 0..<10) == [1, 7, 8, 9])
    #expect(try await cache.trim(to: each * 4) == 0)
    #expect(try await cache.trim(to: -1) == 4)
    #expect(cache.counters.evictions[.trimmed] == 10)
  }

  @Test("the order of uses survives a restart, exact to a minute")
  func recencyOnDisk() async throws {
    let first = try cache(limit: nil)
    try await fill(first, 0..<6)
    clock.advance(by: .seconds(61))
    _ = try await first.bytes(key(0))
    await first.close()
    let second = try cache(limit: nil)
    let entries = try await second.entries()
    #expect(entries.map(\.key) == [key(1), key(2), key(3), key(4), key(5), key(0)])
    #expect(entries.last?.lastUsed == clock.now)
    let each = try await second.totalSize / 6
    try await second.trim(to: each * 2)
    #expect(try await present(second, 0..<6) == [0, 5])
  }

  @Test("a read does not write to a file that was used within the last minute")
  func lazyRecency() async throws {
    let first = try cache(limit: nil)
    try await fill(first, 0..<1)
    let stored = clock.now
    clock.advance(by: .seconds(59))
    _ = try await first.bytes(key(0))
    #expect(try await first.entries().first?.lastUsed == clock.now)
    #expect(try await cache(limit: nil).entries().first?.lastUsed == stored)
  }

  @Test("a lowered limit is enforced when the folder is opened")
  func loweredLimit() async throws {
    let first = try cache(limit: nil)
    try await fill(first, 0..<20)
    await first.close()
    let second = try cache(limit: 100_000)
    #expect(try await second.totalSize <= 90_000)
    #expect(try await present(second, 15..<20) == [15, 16, 17, 18, 19])
  }

  @Test("entries that another cache stores are counted once, before anything is evicted")
  func sharedLimit() async throws {
    let one = try cache(limit: 200_000)
    let two = try cache(limit: 200_000)
    try await fill(one, 0..<8)
    try await fill(two, 8..<16)
    let sum = folder.allocatedSize
    #expect(try await one.totalSize == sum)
    #expect(try await two.totalSize == sum)
    #expect(try await one.entryCount == 16)
    #expect(one.counters.evictions[.size, default: 0] + two.counters.evictions[.size, default: 0] == 0)
    try await fill(one, 16..<40)
    #expect(try await one.totalSize <= 200_000)
    let left = folder.allocatedSize
    #expect(left == (try await two.totalSize))
  }

  @Test("the limit applies to the folder, however many caches store in it", arguments: [2, 4, 8])
  func limitOfManyCaches(count: Int) async throws {
    let limit: Int64 = 1_000_000
    let caches = try (0..<count).map { _ in try cache(limit: limit) }
    for number in 0..<340 {
      clock.advance(by: .seconds(1))
      try await caches[number % count].store(bytes(10_000), for: key(number), metadata: metadata(at: clock.now))
    }
    for cache in caches { await cache.close() }
    let sum = folder.allocatedSize
    #expect(sum <= limit / 10 * 12, "\(sum)")
    #expect(sum >= limit / 10 * 7, "\(sum)")
  }

  @Test("an entry above 90 % of the limit is refused and evicts nothing")
  func largestEntry() async throws {
    let cache = try cache(limit: 1_000_000)
    try await fill(cache, 0..<10)
    let count = try await cache.entryCount
    let body = bytes(1_000_000)
    for length in [898_000, 899_800, 950_000, 1_000_000] {
      let stated = await failure {
        try await cache.store(Data(body.prefix(length)), for: key(100), metadata: metadata(at: clock.now))
      }
      #expect(stated?.code == .entryTooLarge)
      let writer = try await cache.makeWriter(for: key(100), metadata: metadata(at: clock.now))
      #expect(
        await failure {
          try await writer.write(Data(body.prefix(length)))
          _ = try await writer.commit(trailers: nil)
        }?.code == .entryTooLarge)
      #expect(try await cache.entryCount == count)
    }
    // The largest accepted entry stays, and others are evicted for it.
    clock.advance(by: .seconds(1))
    try await cache.store(Data(body.prefix(895_000)), for: key(101), metadata: metadata(at: clock.now))
    // The size is read after the sweep.
    #expect(try await cache.totalSize <= 900_000)
    try await fill(cache, 20..<21)
    #expect(try await cache.totalSize <= 1_000_000)
    #expect(try await present(cache, 20..<21) == [20])
    #expect(try await present(cache, 101..<102) == [101])
  }

  @Test("small entries stay within the limit as the system counts it", arguments: ["", "v"])
  func smallEntries(variant: String) async throws {
    let limit: Int64 = 1_000_000
    let cache = try cache(limit: limit)
    for number in 0..<600 {
      try await cache.store(bytes(10), for: CacheKey(resource: "\(number)", variant: variant), metadata: metadata())
    }
    #expect(try await cache.totalSize <= limit)
    #expect(try await cache.totalSize == folder.allocatedSize)
    #expect((100...250).contains(folder.entryFiles.count))
  }

  @Test("metadata counts too, so a small body with too much metadata is refused")
  func largeMetadata() async throws {
    let cache = try cache(limit: 100_000)
    try await fill(cache, 0..<3)
    let large = metadata(at: clock.now, padding: 95_000)
    #expect(await failure { try await cache.store(bytes(10), for: key(9), metadata: large) }?.code == .entryTooLarge)
    #expect(try await cache.entryCount == 3)
  }

  @Test("entries are listed with key, size, dates and validators, the least recently used first")
  func listing() async throws {
    let cache = try cache(limit: nil)
    let start = clock.now
    let odd = CacheKey(resource: "\0/../", variant: "v", transform: "f")
    try await cache.store(bytes(100), for: odd, metadata: metadata(etag: "\"odd\"", at: clock.now))
    clock.advance(by: .seconds(5))
    let stored = try await cache.store(bytes(300_000), for: key(1), metadata: metadata(at: clock.now))
    let entries = try await cache.entries()
    #expect(entries.map(\.key) == [odd, key(1)])
    #expect(entries[0].storedAt == start)
    #expect(entries[0].lastUsed == start)
    #expect(entries[0].metadata.response.headerFields[.eTag] == "\"odd\"")
    #expect(entries[1].metadata == stored)
    let sizes = try entries.map { try #require($0.size) }
    #expect(sizes[1] > 300_000)
    // The first entry is in a folder of its own.
    #expect(sizes.reduce(4_096, +) == (try await cache.totalSize))
  }
}
