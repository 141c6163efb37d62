import CacheCore
import CacheTesting
import DiskStore
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

@Suite("Disk store: repair")
struct RepairTests {
  let folder: TemporaryFolder
  let clock = ManualClock()

  init() throws { folder = try TemporaryFolder() }

  private func cache() throws -> DiskCache { try DiskCache(path: folder.path, configuration: .init(clock: clock)) }

  private func key(_ number: Int) -> CacheKey { CacheKey(resource: "\(number)") }

  private func store(_ range: Range<Int>, in cache: DiskCache) async throws {
    for number in range { try await cache.store(bytes(1_000 + number), for: key(number), metadata: metadata(at: clock.now)) }
  }

  @Test("repair removes damaged entries and orphans, leaves intact entries, and reports the numbers")
  func mends() async throws {
    let cache = try cache()
    try await store(0..<30, in: cache)
    for index in [3, 11, 20] {
      var content = try file(folder.entryFiles[index])
      content[content.count / 2 - 300] ^= 1
      try put(content, folder.entryFiles[index])
    }
    #expect(try await cache.entryCount == 30, "the work at opening is done")
    try put(Data("half".utf8), folder.root + "/tmp/4711-ab-1.spool")
    let report = try await cache.repair()
    #expect(report.good == 27)
    #expect(report.damaged.count == 3)
    #expect(report.removed == 3)
    #expect(report.orphans == 1)
    #expect(!report.renewedCounters)
    let usage = try #require(await cache.usage())
    #expect(usage.entries == 27)
    #expect(usage.bytes == folder.allocatedSize)
    #expect(report.isClean)
    #expect(folder.entryFiles.count == 27)
    #expect(folder.temporaryFiles.isEmpty)
    #expect(try await cache.totalSize == usage.bytes)
    let again = try await cache.repair()
    #expect(again.damaged.isEmpty && again.orphans == 0)
  }

  @Test("repair leaves another cache's partial entries, and entries stored during and after it are found by both")
  func beside() async throws {
    let (one, two) = (try cache(), try cache())
    try await store(0..<5, in: two)
    let writer = try await two.makeWriter(for: key(100), metadata: metadata(at: clock.now))
    try await writer.write(bytes(200_000))
    #expect(!folder.temporaryFiles.isEmpty)
    try folder.raise(.started)
    let report = try await one.repair()
    #expect(report.orphans == 0)
    #expect(report.renewedCounters)
    #expect(try await one.usage()?.entries == 5)
    _ = try await writer.commit(trailers: nil)
    #expect(try await one.bytes(key(100)) == bytes(200_000))
    try await store(200..<210, in: two)
    for number in 200..<210 { #expect(try await one.bytes(key(number)) == bytes(1_000 + number)) }
    try await store(300..<310, in: one)
    for number in 300..<310 { #expect(try await two.bytes(key(number)) == bytes(1_000 + number)) }
    #expect(try await one.entryCount == 26)
    #expect(try await two.entryCount == 26)
  }

  @Test("misses no longer read the file system after repair has reset a killed process's counters")
  func counters() async throws {
    let cache = try cache()
    // A second cache ends the lease of the first one, as every process that opens the folder does.
    let other = try self.cache()
    defer { withExtendedLifetime(other) {} }
    let lost = key(0)
    try await store(0..<1, in: cache)
    let entryPath = try #require(folder.entryFiles.first)
    let whole = try file(entryPath)
    try await cache.remove(lost, ifRevision: nil)
    try await store(1..<3, in: cache)
    try folder.raise(.started)
    // Added without incrementing the counters, so only a file system lookup finds it.
    try put(whole, entryPath)
    #expect(try await cache.entry(for: lost) != nil)
    try await cache.remove(lost, ifRevision: nil)
    #expect(try await cache.repair().renewedCounters)
    #expect(try await cache.entry(for: lost) == nil)
    try put(whole, entryPath)
    #expect(try await cache.entry(for: lost) == nil)
  }

  @Test(
    "a cache that uses the renewed counters finds a store that was made while the folder was briefly locked")
  func lockedMeanwhile() async throws {
    // Given
    let faults = FaultyFileSystem()
    let one = try cache()
    let two = try DiskCache(path: folder.path, configuration: .init(clock: clock), calls: faults.calls)
    _ = try await two.totalSize
    try await store(0..<3, in: two)
    try folder.raise(.started)
    #expect(try await one.repair().renewedCounters)
    #expect(try await one.entry(for: key(7)) == nil)

    // When
    let lock = open(folder.root, O_RDONLY | O_CLOEXEC)
    try #require(lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0)
    faults.set { $0.onPause = { _ in unlockAndClose(lock) } }
    try await store(7..<8, in: two)

    // Then
    #expect(faults.current.pauses == 1)
    #expect(try await one.bytes(key(7)) == bytes(1_007))
  }

  @Test("repairing a read-only folder throws an error and changes nothing")
  func readOnly() async throws {
    let faults = FaultyFileSystem()
    let cache = try DiskCache(path: folder.path, configuration: .init(), calls: faults.calls)
    try await store(0..<3, in: cache)
    try put(Data("x".utf8), folder.entryFiles[0])
    faults.set { $0.isReadOnly = true }
    #expect(await failure { _ = try await cache.repair() }?.code == .readOnly)
    #expect(folder.entryFiles.count == 3)
  }
}
