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

@Suite("Disk store: recovery from external changes of its folder")
struct RecoveryTests {
  let folder: TemporaryFolder
  let key = CacheKey(resource: "r")

  init() throws { folder = try TemporaryFolder() }

  private func remove(_ path: String) throws { try FileManager.default.removeItem(atPath: path) }

  @Test("removing all entries works even if the folder of temporary files was deleted", arguments: [true, false])
  func removeAllWithoutTemporaryFolder(hasWritten: Bool) async throws {
    let first = try folder.sharedCache()
    try await first.store(bytes(5), for: key, metadata: metadata())
    let cache = try folder.sharedCache()
    if hasWritten { try await cache.store(bytes(5), for: CacheKey(resource: "s"), metadata: metadata()) }
    try remove(folder.root + "/tmp")
    try await cache.removeAll()
    #expect(folder.entryFiles.isEmpty)
    #expect(try await cache.entryCount == 0)
    #expect(try await cache.bytes(key) == nil)
    try await cache.store(bytes(6), for: key, metadata: metadata())
    #expect(try await cache.bytes(key) == bytes(6))
    #expect(folder.temporaryFiles.isEmpty)
    // A released cache deletes its files in that folder at some time.
    withExtendedLifetime(first) {}
  }

  @Test("a deleted folder is noticed when the entries are counted")
  func countOfDeletedFolder() async throws {
    let path = folder.path + "/store"
    let cache = try DiskCache(path: path)
    try await cache.store(bytes(5), for: key, metadata: metadata())
    #expect(try await cache.entryCount == 1)
    try remove(path)
    #expect(try await cache.entryCount == 0)
    #expect(try await cache.totalSize == 0)
  }

  @Test("a folder that another cache recreated is counted correctly, and both caches see its entries")
  func countOfFolderMadeAnew() async throws {
    let path = folder.path + "/store"
    let one = try folder.sharedCache(at: path)
    try await one.store(bytes(5), for: key, metadata: metadata())
    #expect(try await one.entryCount == 1)
    try remove(path)
    let two = try folder.sharedCache(at: path)
    #expect(try await two.entryCount == 0)
    try await two.store(bytes(5), for: CacheKey(resource: "a"), metadata: metadata())
    try await two.store(bytes(5), for: CacheKey(resource: "b"), metadata: metadata())
    #expect(try await one.entryCount == 2)
    try await one.store(bytes(5), for: CacheKey(resource: "c"), metadata: metadata())
    #expect(try await two.entryCount == 3)
    #expect(try await one.entryCount == 3)
  }

  @Test("a count made during another process's change is not trusted afterwards")
  func countDuringChange() async throws {
    let cache = try DiskCache(path: folder.path)
    for number in 0..<3 { try await cache.store(bytes(5), for: CacheKey(resource: "\(number)"), metadata: metadata()) }
    // Another process has announced a change but not made it yet.
    try folder.raise(.started)
    #expect(try await cache.entryCount == 3)
    try remove(folder.entryFiles[0])
    #expect(try await cache.entryCount == 2)
    try folder.raise(.finished)
    #expect(try await cache.entryCount == 2)
  }

  @Test("caches with different times to live or clocks have different identifiers")
  func identities() throws {
    func id(_ configuration: DiskCache.Configuration) throws -> ComponentID {
      try folder.sharedCache(configuration: configuration).id
    }
    let plain = try id(.init())
    #expect(try id(.init(sizeLimit: 5, durability: .file)) == plain)
    let week = try id(.init(expiration: .after(.seconds(604_800))))
    #expect(week != plain)
    #expect(try id(.init(expiration: .after(.seconds(604_800)))) == week)
    #expect(try id(.init(expiration: .after(.seconds(604_801)))) != week)
    #expect(try id(.init(expiration: .at(Timestamp(seconds: 604_800)))) != week)
    let clock = ManualClock()
    let cache = try folder.sharedCache(clock: clock)
    #expect(cache.id != plain)
    #expect(cache.id == cache.id)
    #expect(try id(.init(clock: clock)) != cache.id)
  }

  /// Opens the folder and takes its lock.
  private func lockedFolder() throws -> Int32 {
    let descriptor = open(folder.root, O_RDONLY | O_CLOEXEC)
    try #require(descriptor >= 0 && flock(descriptor, LOCK_EX | LOCK_NB) == 0)
    return descriptor
  }

  @Test("a folder whose lock is never released causes an error after a bounded wait")
  func stuckLock() async throws {
    await (try DiskCache(path: folder.path)).close()
    let descriptor = try lockedFolder()
    defer { close(descriptor) }
    let faults = FaultyFileSystem()
    let error = #expect(throws: CacheError.self) {
      try DiskCache(path: folder.path, configuration: .init(), calls: faults.calls)
    }
    #expect(error?.code == .fileSystem)
    #expect(error?.path == folder.root)
    #expect(error?.errno == EWOULDBLOCK)
    #expect(error?.reason.contains("another process") == true)
    #expect(faults.current.pauses == 99)
  }

  @Test("a folder whose lock is released in time is opened")
  func passingLock() async throws {
    try await DiskCache(path: folder.path).store(bytes(5), for: key, metadata: metadata())
    let descriptor = try lockedFolder()
    let faults = FaultyFileSystem()
    faults.set { $0.onPause = { number in if number == 3 { unlockAndClose(descriptor) } } }
    let cache = try DiskCache(path: folder.path, configuration: .init(), calls: faults.calls)
    #expect(faults.current.pauses == 3)
    #expect(try await cache.bytes(key) == bytes(5))
  }

  @Test(
    "starting a writer does not check permissions until a writer has found the folder read-only"
  )
  func startsWithoutListing() async throws {
    // Given
    let faults = FaultyFileSystem()
    let cache = try DiskCache(path: folder.path, configuration: .init(), calls: faults.calls)
    #expect(try await cache.entryCount == 0)
    let asked = faults.current.permissionRequests

    // When
    let writer = try await cache.makeWriter(for: key, metadata: metadata())
    #expect(faults.current.permissionRequests == asked)
    faults.set { $0.isReadOnly = true }
    try await writer.write(bytes(10))
    let late = await failure { _ = try await writer.commit(trailers: nil) }
    let early = await failure { _ = try await cache.makeWriter(for: key, metadata: metadata()) }

    // Then
    for error in [late, early] {
      #expect(error?.code == .readOnly)
      #expect(error?.reason.hasPrefix("the folder is not writable") == true)
      #expect(error?.path == cache.path + "/etagere-1")
    }
    faults.set { $0.isReadOnly = false }
    try await cache.store(bytes(10), for: key, metadata: metadata())
    #expect(try await cache.bytes(key) == bytes(10))
  }

  @Test("a batch on a read-only folder throws, and changes nothing, and a batch of no entries does not throw")
  func readOnlyBatches() async throws {
    let faults = FaultyFileSystem()
    let cache = try DiskCache(path: folder.path, configuration: .init(), calls: faults.calls)
    try await cache.store(bytes(10), for: key, metadata: metadata())
    faults.set { $0.isReadOnly = true }
    #expect(await failure { try await cache.remove([key]) }?.code == .readOnly)
    #expect(await failure { try await cache.markStale([key], at: metadata().responseTime) }?.code == .readOnly)
    try await cache.remove([])
    try await cache.markStale([], at: metadata().responseTime)
    #expect(try await cache.bytes(key) == bytes(10))
  }

  @Test("a folder that becomes writable is written to, and one that becomes read-only causes errors", arguments: 0..<3)
  func changingRights(first: Int) async throws {
    let other = try folder.sharedCache()
    try await other.store(bytes(5), for: key, metadata: metadata())
    #expect(try await other.entryCount == 1)
    let faults = FaultyFileSystem()
    faults.set { $0.isReadOnly = true }
    let cache = try folder.sharedCache(calls: faults.calls)
    #expect(!cache.isWritable)
    #expect(try await cache.bytes(key) == bytes(5))
    #expect(await failure { try await cache.store(bytes(6), for: key, metadata: metadata()) }?.code == .readOnly)
    faults.set { $0.isReadOnly = false }
    #expect(cache.isWritable)
    switch first {
    case 0:
      try await cache.store(bytes(6), for: CacheKey(resource: "s"), metadata: metadata())
      #expect(try await cache.bytes(CacheKey(resource: "s")) == bytes(6))
    case 1: try await cache.remove(key, ifRevision: nil)
    default: try await cache.removeAll()
    }
    // The other cache sees the change.
    #expect(try await other.entryCount == (first == 0 ? 2 : 0))
    faults.set { $0.isReadOnly = true }
    #expect(!cache.isWritable)
    #expect(await failure { try await cache.store(bytes(6), for: key, metadata: metadata()) }?.code == .readOnly)
    #expect(await failure { try await cache.remove(key, ifRevision: nil) }?.code == .readOnly)
    #expect(await failure { try await cache.removeAll() }?.code == .readOnly)
  }

  #if os(Linux)
  @Test("a removal with a revision throws if the entry cannot be read")
  func unreadableRemoval() async throws {
    let cache = try DiskCache(path: folder.path)
    let stored = try await cache.store(bytes(5), for: key, metadata: metadata())
    let entryPath = folder.entryFiles[0]
    try remove(entryPath)
    // No process can open a socket as a file.
    try #require(mknod(entryPath, S_IFSOCK | 0o600, 0) == 0)
    let error = await failure { try await cache.remove(key, ifRevision: stored.revision) }
    #expect(error?.code == .fileSystem)
    #expect(error?.path == entryPath)
    #expect(error?.errno == ENXIO)
    try await cache.remove(key, ifRevision: nil)
    try await cache.remove(key, ifRevision: stored.revision)
    #expect(!fileExists(entryPath))
  }
  #endif
}
