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

/// The locks are stuck as if a process had been suspended during an append.
@Suite("Disk store: an entry whose lock is never released")
struct StuckLockTests {
  let folder: TemporaryFolder
  let faults = FaultyFileSystem()
  let cache: DiskCache
  let key = CacheKey(resource: "r")

  init() throws {
    folder = try TemporaryFolder()
    cache = try DiskCache(path: folder.path, configuration: .init(), calls: faults.calls)
  }

  /// Opens the only entry's file and takes its lock.
  private func lockedEntry() throws -> Int32 {
    let descriptor = open(try #require(folder.entryFiles.first), O_RDWR | O_CLOEXEC)
    try #require(descriptor >= 0 && flock(descriptor, LOCK_EX | LOCK_NB) == 0)
    return descriptor
  }

  @Test(
    "an update fails after a bounded wait, but the entry can be read, evicted and stored again", .timeLimit(.minutes(30)))
  func append() async throws {
    let stored = try await cache.store(bytes(100), for: key, metadata: metadata())
    let descriptor = try lockedEntry()
    defer { close(descriptor) }

    let error = await failure { _ = try await cache.updateMetadata(of: key, to: stored, ifRevision: stored.revision) }
    #expect(error?.code == .fileSystem)
    #expect(error?.errno == EWOULDBLOCK)
    #expect(error?.reason.contains("another process") == true)
    #expect(faults.current.pauses == 99)

    #expect(try await cache.bytes(key) == bytes(100))
    #expect(try await cache.trim(to: 0) == 1)
    #expect(try await cache.bytes(key) == nil)
    let next = try await cache.store(bytes(50), for: key, metadata: metadata())
    #expect(try await cache.updateMetadata(of: key, to: next, ifRevision: next.revision))
    #expect(try await cache.bytes(key) == bytes(50))
    #expect(faults.current.pauses == 99)
    await cache.close()
  }

  @Test("an update succeeds if the lock is released in time", .timeLimit(.minutes(30)))
  func passing() async throws {
    let stored = try await cache.store(bytes(100), for: key, metadata: metadata())
    let descriptor = try lockedEntry()
    faults.set { $0.onPause = { number in if number == 3 { unlockAndClose(descriptor) } } }
    #expect(try await cache.updateMetadata(of: key, to: stored, ifRevision: stored.revision))
    #expect(faults.current.pauses == 3)
  }

  @Test("an entry without an intact metadata record is a miss after a bounded wait, and stays", .timeLimit(.minutes(30)))
  func read() async throws {
    try await cache.store(bytes(100), for: key, metadata: metadata())
    let path = try #require(folder.entryFiles.first)
    let whole = try file(path)
    let record = try #require(whole.ranges(of: Data("ETMR".utf8)).last)
    let descriptor = try lockedEntry()
    func write(_ bytes: Data) throws {
      let count = bytes.withUnsafeBytes { pwrite(descriptor, $0.baseAddress, $0.count, off_t(record.lowerBound)) }
      try #require(count == bytes.count)
    }
    try write(Data("half".utf8))

    #expect(try await cache.bytes(key) == nil)
    #expect(faults.current.pauses == 99)
    #expect(cache.counters.damaged == 0)
    #expect(folder.entryFiles.count == 1)

    try write(whole[record])
    close(descriptor)
    #expect(try await cache.bytes(key) == bytes(100))
  }
}
