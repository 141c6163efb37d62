import CacheCore
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

/// System calls that a test can make fail, with counters.
final class FaultyFileSystem: Sendable {
  enum Write: Sendable { case normal, fails(SystemError), short, interrupted }

  struct State: Sendable {
    var write = Write.normal
    /// The number of bytes that still fit on the disk.
    var room = Int.max
    /// Whether removals free space.
    var givesBack = false
    var rename: SystemError?
    var unlink: SystemError?
    /// A part of the paths whose removal fails.
    var undeletable: String?
    var sync: SystemError?
    var isReadOnly = false
    /// The number of permission checks.
    var permissionRequests = 0
    /// An action to run while a lock is waited for.
    var onPause: (@Sendable (_ number: Int) -> Void)?
    var pauses = 0
    /// The inode numbers of the flushed files.
    var flushed: Set<UInt64> = []
    var syncs = 0
    var writes = 0
  }

  private let state = Lock(State())

  func set(_ change: (inout State) -> Void) { state.withLock { change(&$0) } }

  var current: State { state.withLock { $0 } }

  var calls: FileCalls {
    let system = FileCalls.system
    var calls = system
    calls.write = { [self] descriptor, bytes, offset in
      let (mode, room, number) = state.withLock { state in
        state.writes += 1
        return (state.write, state.room, state.writes)
      }
      if room < bytes.count {
        guard room > 0 else { return .failure(.diskFull) }
        set { $0.room = 0 }
        return system.write(descriptor, UnsafeRawBufferPointer(rebasing: bytes[0..<room]), offset)
      }
      if room != .max { set { $0.room -= bytes.count } }
      switch mode {
      case .normal: return system.write(descriptor, bytes, offset)
      case .fails(let error): return .failure(error)
      case .short:
        return system.write(descriptor, UnsafeRawBufferPointer(rebasing: bytes[0..<min(bytes.count, 1 + number % 4099)]), offset)
      case .interrupted:
        return number % 2 == 0 ? .failure(SystemError(number: 4)) : system.write(descriptor, bytes, offset)
      }
    }
    calls.sync = { [self] descriptor in
      var status = stat()
      fstat(descriptor, &status)
      let number = UInt64(status.st_ino)
      set { state in
        state.syncs += 1
        state.flushed.insert(number)
      }
      return current.sync ?? system.sync(descriptor)
    }
    calls.rename = { [self] from, to in current.rename ?? system.rename(from, to) }
    calls.unlink = { [self] path in
      if let part = current.undeletable, path.contains(part) { return SystemError(number: 1) }
      var status = stat()
      if current.givesBack, lstat(path, &status) == 0 { set { $0.room += Int(status.st_size) } }
      return current.unlink ?? system.unlink(path)
    }
    calls.unlinkInside = { [self] folder, name in
      if let part = current.undeletable, part.contains(String(cString: name)) { return SystemError(number: 1) }
      var status = stat()
      if current.givesBack, fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 { set { $0.room += Int(status.st_size) } }
      return current.unlink ?? system.unlinkInside(folder, name)
    }
    calls.isWritable = { [self] path in
      set { $0.permissionRequests += 1 }
      return !current.isReadOnly && system.isWritable(path)
    }
    calls.pause = { [self] in
      let (number, action) = state.withLock { state in
        state.pauses += 1
        return (state.pauses, state.onPause)
      }
      action?(number)
    }
    return calls
  }
}

@Suite("Disk store: faults of the file system")
struct FaultTests {
  let folder: TemporaryFolder
  let faults = FaultyFileSystem()
  let cache: DiskCache
  let key = CacheKey(resource: "r")

  init() throws {
    folder = try TemporaryFolder()
    cache = try DiskCache(path: folder.path, configuration: .init(), calls: faults.calls)
  }

  @Test("a batch that cannot remove one file removes the others and names that file")
  func undeletableInBatch() async throws {
    let keys = (0..<40).map { CacheKey(resource: "\($0)") }
    for key in keys { try await cache.store(bytes(10), for: key, metadata: metadata()) }
    let path = folder.entryFiles[7]
    faults.set { $0.undeletable = path }
    let error = await failure { try await cache.remove(keys) }
    #expect(error?.path == path)
    #expect(folder.entryFiles == [path])
    #expect(cache.counters.failedRemovals == 1)
    faults.set { $0.undeletable = nil }
    try await cache.remove(keys)
    #expect(folder.entryFiles.isEmpty)
  }

  @Test(
    "a full disk causes an error and leaves nothing behind, and stores work when space is available again",
    arguments: [100, 70_000, 900_000])
  func diskFull(length: Int) async throws {
    try await cache.store(bytes(50), for: key, metadata: metadata())
    for room in [0, 1, length / 2, length] {
      faults.set { $0.room = room }
      let error = await failure { try await cache.store(bytes(length), for: key, metadata: metadata()) }
      #expect(error?.code == .diskFull)
      #expect(error?.path?.hasPrefix(folder.root) == true)
      #expect(error?.errno == SystemError.diskFull.number)
      #expect(error?.reason.contains("No space left") == true)
      #expect(try await cache.bytes(key) == bytes(50))
    }
    #expect(cache.counters.failedWrites == 4)
    faults.set { $0.room = .max }
    try await cache.store(bytes(length), for: key, metadata: metadata())
    #expect(try await cache.bytes(key) == bytes(length))
    await cache.close()
    #expect(folder.temporaryFiles.isEmpty)
  }

  @Test("a disk that fills up during a body fails the writer for good")
  func fullInMidBody() async throws {
    let writer = try await cache.makeWriter(for: key, metadata: metadata())
    try await writer.write(bytes(100_000))
    faults.set { $0.room = 10 }
    #expect(await failure { try await writer.write(bytes(100_000)) }?.code == .diskFull)
    faults.set { $0.room = .max }
    #expect(await failure { try await writer.write(bytes(1)) }?.code == .diskFull)
    #expect(await failure { _ = try await writer.commit(trailers: nil) }?.code == .diskFull)
    await cache.close()
    #expect(folder.temporaryFiles.isEmpty)
    #expect(folder.entryFiles.isEmpty)
  }

  @Test("an update that does not fit on the disk leaves the entry unchanged")
  func fullOnRefresh() async throws {
    let stored = try await cache.store(bytes(50), for: key, metadata: metadata())
    for room in [0, 5, 45, 300] {
      faults.set { $0.room = room }
      let fresh = metadata(revision: stored.revision, etag: "\"new\"")
      #expect(
        await failure { _ = try await cache.updateMetadata(of: key, to: fresh, ifRevision: stored.revision) }?.code == .diskFull)
      faults.set { $0.room = .max }
      let found = try await cache.entry(for: key)?.metadata
      // Everything in a record except its padding may have fitted.
      #expect(found == stored || room == 300 && found?.response.headerFields[.eTag] == "\"new\"")
    }
  }

  @Test("writes that are short or interrupted continue where they stopped", arguments: [true, false])
  func shortWrites(short: Bool) async throws {
    faults.set { $0.write = short ? .short : .interrupted }
    let body = bytes(400_000)
    let stored = try await cache.store(body, for: key, metadata: metadata())
    try await cache.store(bytes(3000), for: CacheKey(resource: "small"), metadata: metadata())
    #expect(
      try await cache.updateMetadata(of: key, to: metadata(revision: stored.revision, etag: "\"n\""), ifRevision: stored.revision)
    )
    #expect(try await cache.bytes(key) == body)
    #expect(try await cache.bytes(CacheKey(resource: "small")) == bytes(3000))
    #expect(try await cache.verify().good == 2)
    #expect(faults.current.writes > 4)
  }

  @Test("a failed move of an entry into place causes an error with its path", arguments: [1, 5, 28, 30])
  func failingRename(number: Int32) async throws {
    try await cache.store(bytes(50), for: key, metadata: metadata())
    faults.set { $0.rename = SystemError(number: number) }
    let error = await failure { try await cache.store(bytes(9), for: key, metadata: metadata()) }
    #expect(error?.errno == number)
    #expect(error?.code == (number == 28 ? .diskFull : .fileSystem))
    #expect(error?.path == folder.entryFiles[0])
    #expect(try await cache.bytes(key) == bytes(50))
    faults.set { $0.rename = nil }
    try await cache.store(bytes(9), for: key, metadata: metadata())
    #expect(try await cache.bytes(key) == bytes(9))
    await cache.close()
    #expect(folder.temporaryFiles.isEmpty)
  }

  @Test("a sweep continues after a file that cannot be deleted")
  func undeletable() async throws {
    for number in 0..<5 { try await cache.store(bytes(1000), for: CacheKey(resource: "\(number)"), metadata: metadata()) }
    let stubborn = folder.entryFiles[2]
    faults.set { $0.undeletable = stubborn }
    #expect(try await cache.trim(to: 0) == 4)
    #expect(folder.entryFiles == [stubborn])
    #expect(cache.counters.failedRemovals == 1)
    #expect(cache.counters.evictions[.trimmed] == 4)
    faults.set { $0.undeletable = nil }
    #expect(try await cache.trim(to: 0) == 1)
    #expect(try await cache.totalSize == 0)
  }

  @Test("a failed removal causes an error with the path, and a damaged file that cannot be removed is still a miss")
  func failingRemoval() async throws {
    try await cache.store(bytes(1000), for: key, metadata: metadata())
    faults.set { $0.unlink = SystemError(number: 1) }
    let error = await failure { try await cache.remove(key, ifRevision: nil) }
    #expect(error?.code == .fileSystem)
    #expect(error?.path == folder.entryFiles[0])
    try put(Data("x".utf8), folder.entryFiles[0])
    #expect(try await cache.bytes(key) == nil)
    #expect(cache.counters.failedRemovals == 2)
  }

  @Test(
    "durability determines whether nothing, the file, or the file and its folders are flushed",
    arguments: [(DiskCache.Durability.none, 0, 0), (.file, 1, 1), (.fileAndFolder, 3, 2)])
  func durability(level: DiskCache.Durability, first: Int, second: Int) async throws {
    let cache = try DiskCache(path: folder.path, configuration: .init(durability: level), calls: faults.calls)
    // The folder's key is flushed when it is created.
    let before = faults.current.syncs
    try await cache.store(bytes(200_000), for: key, metadata: metadata())
    #expect(faults.current.syncs - before == first)
    try await cache.store(bytes(2000), for: key, metadata: metadata())
    #expect(faults.current.syncs - before == first + second)
  }

  @Test("a new or recreated folder is flushed together with its parents if folders are flushed")
  func durabilityOfTheFolder() async throws {
    func number(_ path: String) throws -> UInt64 {
      try #require(try FileManager.default.attributesOfItem(atPath: path)[.systemFileNumber] as? UInt64)
    }
    let path = folder.path + "/a/b"
    func named() throws -> [UInt64] { try [path + "/etagere-1", path, folder.path + "/a", folder.path].map { try number($0) } }
    let cache = try DiskCache(path: path, configuration: .init(durability: .fileAndFolder), calls: faults.calls)
    #expect(faults.current.flushed.isSuperset(of: try named()))
    try FileManager.default.removeItem(atPath: folder.path + "/a")
    faults.set { $0.flushed = [] }
    try await cache.store(bytes(9), for: key, metadata: metadata())
    #expect(faults.current.flushed.isSuperset(of: try named()))
    faults.set { $0.flushed = [] }
    try await cache.removeAll()
    #expect(faults.current.flushed == [try number(path + "/etagere-1")])
    faults.set { $0.flushed = [] }
    let lazy = try DiskCache(path: folder.path + "/c", configuration: .init(durability: .file), calls: faults.calls)
    #expect(lazy.isWritable)
    #expect(faults.current.flushed.isDisjoint(with: [try number(folder.path + "/c"), try number(folder.path)]))
  }

  @Test("updates flush only before the log is overwritten, and only if durability requires it", arguments: [true, false])
  func barriers(durable: Bool) async throws {
    let cache = try DiskCache(
      path: folder.path, configuration: .init(durability: durable ? .file : .none), calls: faults.calls)
    let stored = try await cache.store(bytes(10), for: key, metadata: metadata())
    let before = faults.current.syncs
    for _ in 0..<256 { #expect(try await cache.updateMetadata(of: key, to: stored, ifRevision: stored.revision)) }
    let flushes = faults.current.syncs - before
    #expect(durable ? (4...16).contains(flushes) : flushes == 0, "\(flushes)")
  }

  @Test("a failed flush fails the commit, and the earlier entry stays")
  func failingFlush() async throws {
    let cache = try DiskCache(path: folder.path, configuration: .init(durability: .file), calls: faults.calls)
    try await cache.store(bytes(10), for: key, metadata: metadata())
    faults.set { $0.sync = SystemError(number: 5) }
    #expect(await failure { try await cache.store(bytes(20), for: key, metadata: metadata()) }?.errno == 5)
    #expect(try await cache.bytes(key) == bytes(10))
  }
}
