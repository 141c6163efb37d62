import CacheCore
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

@Suite("Disk store: files of other users")
struct OwnershipTests {
  /// A user that owns no cache, and a group that this process is in only if it runs as that user.
  private static let stranger: UInt32 = 65_534
  static let isRoot = geteuid() == 0

  let folder: TemporaryFolder
  let key = CacheKey(resource: "r")

  init() throws { folder = try TemporaryFolder() }

  /// Returns the error of opening the folder.
  private func refusal() -> CacheError? {
    #expect(throws: CacheError.self) { try DiskCache(path: folder.path) }
  }

  @Test(
    "a folder that other users can write to is refused with its path, its mode and a remedy",
    arguments: [0o777, 0o702] as [mode_t])
  func writableByOthers(mode: mode_t) async throws {
    await (try DiskCache(path: folder.path)).close()
    for part in ["", "/entries", "/tmp"] {
      let path = folder.root + part
      try #require(chmod(path, mode) == 0)
      let error = refusal()
      #expect(error?.code == .fileSystem && error?.errno == EPERM)
      #expect(error?.path == path)
      let reason = error?.reason ?? ""
      #expect(reason.contains(path) && reason.contains("mode \(String(mode, radix: 8))") && reason.contains("chmod -R go-w"))
      try #require(chmod(path, 0o700) == 0)
    }
    _ = try DiskCache(path: folder.path)
  }

  @Test("a folder that a group of this process can write to is used, for a shared group or a mounted volume")
  func writableByOwnGroup() async throws {
    await (try DiskCache(path: folder.path)).close()
    try #require(chown(folder.root, geteuid(), getegid()) == 0 && chmod(folder.root, 0o2770) == 0)
    let cache = try DiskCache(path: folder.path)
    try await cache.store(bytes(5), for: key, metadata: metadata())
    #expect(try await cache.bytes(key) == bytes(5))
  }

  @Test("a folder that another group can write to is refused", .enabled(if: isRoot))
  func writableByOtherGroup() throws {
    try #require(mkdir(folder.root, 0o700) == 0)
    try #require(chown(folder.root, geteuid(), Self.stranger) == 0 && chmod(folder.root, 0o770) == 0)
    #expect(refusal()?.path == folder.root)
  }

  @Test(
    "a folder of another user is refused, with any mode and with a sticky bit", .enabled(if: isRoot),
    arguments: [0o700, 0o755, 0o777, 0o1777] as [mode_t])
  func ofAnotherUser(mode: mode_t) throws {
    try #require(mkdir(folder.root, 0o700) == 0)
    try #require(chown(folder.root, Self.stranger, Self.stranger) == 0 && chmod(folder.root, mode) == 0)
    let error = refusal()
    #expect(error?.path == folder.root)
    #expect(error?.reason.contains("user \(Self.stranger)") == true)
  }

  @Test("a parent that all users can write to is used, and the folder in it belongs to this user alone")
  func sharedParent() async throws {
    try #require(chmod(folder.path, 0o1777) == 0)
    let cache = try DiskCache(path: folder.path)
    try await cache.store(bytes(5), for: key, metadata: metadata())
    var status = stat()
    try #require(lstat(folder.root, &status) == 0)
    #expect(status.st_mode & 0o7777 == 0o700 && status.st_uid == geteuid())
    #expect(try await cache.bytes(key) == bytes(5))
  }

  @Test("new folders are for their owner alone, also the parents")
  func newFolders() throws {
    let path = folder.path + "/a/b"
    _ = try DiskCache(path: path)
    for part in ["/a", "/a/b", "/a/b/etagere-1", "/a/b/etagere-1/entries", "/a/b/etagere-1/tmp"] {
      var status = stat()
      try #require(lstat(folder.path + part, &status) == 0)
      #expect(status.st_mode & 0o7777 == 0o700, "\(part)")
    }
  }

  @Test("an entry that all users can write to is a miss, is counted and is removed")
  func writableEntry() async throws { try await entry { chmod($0, 0o666) } }

  @Test("an entry of another user is a miss, is counted and is removed", .enabled(if: isRoot))
  func entryOfAnotherUser() async throws { try await entry { chown($0, Self.stranger, Self.stranger) } }

  private func entry(_ change: (String) -> Int32) async throws {
    let cache = try DiskCache(path: folder.path)
    try await cache.store(bytes(5), for: key, metadata: metadata())
    let path = folder.entryFiles[0]
    try #require(change(path) == 0)
    #expect(try await cache.bytes(key) == nil)
    #expect(cache.counters.damaged == 1)
    #expect(!fileExists(path))
    try await cache.store(bytes(6), for: key, metadata: metadata())
    #expect(try await cache.bytes(key) == bytes(6))
  }

  @Test("a folder that was replaced by another user's while it is open serves and receives nothing", .enabled(if: isRoot))
  func replacedWhileOpen() async throws {
    let cache = try DiskCache(path: folder.path)
    try await cache.store(bytes(5), for: key, metadata: metadata())
    for path in [folder.root] + folder.entryFiles { try #require(chown(path, Self.stranger, Self.stranger) == 0) }
    #expect(try await cache.bytes(key) == nil)
    #expect(await failure { try await cache.store(bytes(6), for: key, metadata: metadata()) }?.errno == EPERM)
  }

  @Test("the key and the counters of another user are not used", .enabled(if: isRoot))
  func keyOfAnotherUser() async throws {
    let first = try DiskCache(path: folder.path)
    try await first.store(bytes(5), for: key, metadata: metadata())
    let secret = first.digestSecret
    await first.close()
    try #require(chown(folder.root + "/folder.key", Self.stranger, Self.stranger) == 0)
    let second = try DiskCache(path: folder.path)
    #expect(second.digestSecret != secret)
    #expect(try await second.bytes(key) == nil)
    await second.close()
    try #require(chown(folder.root + "/generation", Self.stranger, Self.stranger) == 0)
    #expect(refusal()?.path == folder.root + "/generation")
  }
}
