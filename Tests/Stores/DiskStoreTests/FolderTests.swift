import CacheCore
import Testing

@testable import DiskStore

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

@Suite("Disk store: folder")
struct FolderTests {
  let folder: TemporaryFolder
  let key = CacheKey(resource: "r")

  init() throws { folder = try TemporaryFolder() }

  private func remove(_ path: String) throws { try FileManager.default.removeItem(atPath: path) }

  @Test("a file in place of the folder causes an error with path and reason")
  func fileInPlace() throws {
    let path = folder.path + "/file"
    try put(Data("x".utf8), path)
    let error = #expect(throws: CacheError.self) { try DiskCache(path: path) }
    #expect(error?.code == .fileSystem)
    #expect(error?.path == path)
    #expect(error?.errno != nil)
    #expect(error?.description.contains("Not a directory") == true)
    #expect(throws: CacheError.self) { try DiskCache(path: path + "/below") }
  }

  @Test("a link or a file in place of the store's folder causes an error and is not followed")
  func linkInPlace() throws {
    let outside = folder.path + "/outside"
    try FileManager.default.createDirectory(atPath: outside, withIntermediateDirectories: true)
    let path = folder.path + "/store"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    try FileManager.default.createSymbolicLink(atPath: path + "/etagere-1", withDestinationPath: outside)
    let error = #expect(throws: CacheError.self) { try DiskCache(path: path) }
    #expect(error?.path == path + "/etagere-1")
    #expect(try FileManager.default.contentsOfDirectory(atPath: outside).isEmpty)
  }

  @Test("a folder that is a link is followed, and another program's files beside and inside the store's folder stay")
  func othersFolder() async throws {
    // Given
    let theirs = folder.path + "/theirs"
    try FileManager.default.createDirectory(atPath: theirs + "/etagere-1/tmp/.hidden", withIntermediateDirectories: true)
    try FileManager.default.createDirectory(atPath: theirs + "/etagere-2/entries", withIntermediateDirectories: true)
    let files = ["mail.db", "etagere-2/folder.key", "etagere-1/notes", "etagere-1/generation.bak"].map { theirs + "/" + $0 }
    for (number, path) in files.enumerated() { try put(bytes(100, seed: UInt64(number)), path) }
    let link = folder.path + "/link"
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: theirs)

    // When
    let cache = try DiskCache(path: link, configuration: .init(sizeLimit: 100_000))
    for number in 0..<30 { try await cache.store(bytes(9_000), for: CacheKey(resource: "\(number)"), metadata: metadata()) }
    try await cache.trim(to: 0)
    _ = try await cache.verify(removingDamaged: true)
    try await cache.removeAll()
    await cache.close()

    // Then
    #expect(cache.path == theirs)
    for (number, path) in files.enumerated() { #expect(try file(path) == bytes(100, seed: UInt64(number)), "\(path)") }
    #expect(try FileManager.default.contentsOfDirectory(atPath: theirs).sorted() == ["etagere-1", "etagere-2", "mail.db"])
  }

  @Test(
    "invalid settings are errors",
    arguments: [
      DiskCache.Configuration(sizeLimit: -1), .init(entrySizeLimit: .min), .init(ioWidth: 0), .init(ioWidth: .max),
    ])
  func invalidSettings(configuration: DiskCache.Configuration) {
    let error = #expect(throws: CacheError.self) { try DiskCache(path: folder.path, configuration: configuration) }
    #expect(error?.code == .invalidConfiguration)
  }

  @Test("invalid paths are errors", arguments: ["", "a\0b"])
  func invalidPaths(path: String) {
    let error = #expect(throws: CacheError.self) { try DiskCache(path: path) }
    #expect(error?.code == .invalidConfiguration)
  }

  @Test("a URL that is not a file URL causes an error, and a file URL with unusual characters works")
  func urls() async throws {
    let web = try #require(URL(string: "https://example.com/a"))
    #expect(#expect(throws: CacheError.self) { try DiskCache(folder: web) }?.code == .invalidConfiguration)
    let cache = try DiskCache(folder: URL(filePath: folder.path + "/a b%20\u{E9}"))
    try await cache.store(bytes(5), for: key, metadata: metadata())
    #expect(fileExists(folder.path + "/a b%20\u{E9}/etagere-1/folder.key"))
  }

  @Test("caches in one folder have the same identifier and secret, however the path is written")
  func identity() throws {
    let one = try folder.sharedCache()
    let two = try folder.sharedCache(at: folder.path + "/x/..//")
    #expect(one.id == two.id)
    #expect(one.digestSecret == two.digestSecret)
    let other = try DiskCache(path: folder.path + "/other")
    #expect(other.id != one.id)
    #expect(other.digestSecret != one.digestSecret)
  }

  @Test("the secret of a folder consists of the bytes that earlier versions derived")
  func secret() {
    let key = SipHash.Key(first: 1, second: 2)
    let (first, second) = SipHash.digest("etagere digest secret 1", key: key)
    let bytes = [first, second].flatMap { word in (0..<8).map { UInt8(truncatingIfNeeded: word >> (8 * $0)) } }
    #expect(FolderKey.digestSecret(key) == DigestSecret(bytes: bytes))
  }

  @Test("a file that was deleted externally is a miss and can be stored again")
  func deletedFile() async throws {
    let cache = try DiskCache(path: folder.path)
    try await cache.store(bytes(5), for: key, metadata: metadata())
    try remove(folder.entryFiles[0])
    #expect(try await cache.bytes(key) == nil)
    #expect(try await cache.totalSize == 0)
    try await cache.store(bytes(6), for: key, metadata: metadata())
    #expect(try await cache.bytes(key) == bytes(6))
  }

  @Test(
    "a folder that was deleted externally is created again, even during a write", arguments: [true, false])
  func deletedFolder(all: Bool) async throws {
    let path = folder.path + "/store"
    let cache = try folder.sharedCache(at: path)
    try await cache.store(bytes(5), for: key, metadata: metadata())
    let small = try await cache.makeWriter(for: CacheKey(resource: "small"), metadata: metadata())
    let large = try await cache.makeWriter(for: CacheKey(resource: "large", variant: "v"), metadata: metadata())
    try await small.write(bytes(1000))
    try await large.write(bytes(300_000))
    try remove(all ? path : path + "/etagere-1")
    #expect(try await cache.bytes(key) == nil)
    #expect(try await cache.variants(of: "r").isEmpty)
    #expect(try await cache.entries().isEmpty)
    try await large.write(bytes(300_000, seed: 2))
    _ = try await large.commit(trailers: nil)
    _ = try await small.commit(trailers: nil)
    try await cache.store(bytes(7), for: key, metadata: metadata())
    for reader in [cache, try folder.sharedCache(at: path)] {
      #expect(try await reader.bytes(key) == bytes(7))
      #expect(try await reader.bytes(CacheKey(resource: "small")) == bytes(1000))
      #expect(try await reader.bytes(CacheKey(resource: "large", variant: "v")) == bytes(300_000) + bytes(300_000, seed: 2))
      #expect(try await reader.entryCount == 3)
    }
    try await cache.removeAll()
    try remove(path)
    try await cache.removeAll()
    #expect(try await cache.entryCount == 0)
  }

  @Test("a damaged key starts the folder over and changes nothing beside it", arguments: [0, 5, 31, 32, 40])
  func damagedKey(length: Int) async throws {
    try put(Data("mine".utf8), folder.path + "/neighbour")
    let before = try folder.sharedCache()
    try await before.store(bytes(5), for: key, metadata: metadata())
    let path = folder.root + "/folder.key"
    var damaged = try file(path)
    if length == 32 { damaged[20] ^= 1 } else { damaged = (damaged + damaged).prefix(length) }
    try put(damaged, path)
    let cache = try folder.sharedCache()
    #expect(cache.digestSecret != before.digestSecret)
    #expect(try await cache.bytes(key) == nil)
    #expect(folder.entryFiles.isEmpty)
    try await cache.store(bytes(6), for: key, metadata: metadata())
    #expect(try await folder.sharedCache().bytes(key) == bytes(6))
    #expect(try file(folder.path + "/neighbour") == Data("mine".utf8))
    #expect(folder.temporaryFiles.isEmpty)
  }

  @Test("caches that open a new folder concurrently agree on its key")
  func simultaneousOpening() async throws {
    let path = folder.path + "/new"
    // The first one flushes the key while the others wait.
    let secrets = try await withThrowingTaskGroup(of: DigestSecret.self) { group in
      for _ in 0..<16 {
        group.addTask { try folder.sharedCache(at: path).digestSecret }
      }
      return try await group.reduce(into: Set<DigestSecret>()) { $0.insert($1) }
    }
    #expect(secrets.count == 1)
    #expect(folder.files(below: path + "/etagere-1/tmp").isEmpty)
  }

  @Test("reading, writing and removing do not follow links inside the folder")
  func links() async throws {
    let cache = try DiskCache(path: folder.path)
    try await cache.store(bytes(5), for: key, metadata: metadata())
    let entryPath = folder.entryFiles[0]
    let outside = folder.path + "/outside"
    try FileManager.default.createDirectory(atPath: outside, withIntermediateDirectories: true)
    let target = outside + "/" + entryPath.split(separator: "/").suffix(1).joined()
    try FileManager.default.moveItem(atPath: entryPath, toPath: target)

    // A link in place of an entry.
    try FileManager.default.createSymbolicLink(atPath: entryPath, withDestinationPath: target)
    #expect(try await cache.bytes(key) == nil)
    #expect(fileExists(target))

    // A link in place of the folder of the entry.
    let shard = String(entryPath.dropLast(35))
    try remove(shard)
    try FileManager.default.createSymbolicLink(atPath: shard, withDestinationPath: outside)
    #expect(try await cache.entryCount == 0)
    try await cache.remove(key, ifRevision: nil)
    #expect(try await cache.trim(to: 0) == 0)
    #expect(fileExists(target))
    let before = try file(target)
    try await cache.store(bytes(9), for: key, metadata: metadata())
    #expect(try await cache.bytes(key) == bytes(9))
    try await cache.removeAll()
    #expect(try file(target) == before)
    #expect(try FileManager.default.contentsOfDirectory(atPath: outside).count == 1)
  }

  @Test(
    "a link that replaces one of the open store's folders causes errors, and its target is not changed",
    arguments: ["", "/entries", "/tmp"])
  func linkInstead(part: String) async throws {
    // Given
    let cache = try DiskCache(path: folder.path)
    let stored = try await cache.store(bytes(5), for: key, metadata: metadata())
    let outside = folder.path + "/outside"
    try FileManager.default.copyItem(atPath: folder.root + part, toPath: outside)
    try FileManager.default.createDirectory(atPath: outside + "/tmp", withIntermediateDirectories: true)
    for name in ["/index", "/x", "/tmp/x"] { try put(Data("theirs".utf8), outside + name) }
    let before = try folder.files(below: outside).map { try file($0) }
    let known = CacheKey(resource: "known")
    try await cache.store(bytes(5), for: known, metadata: metadata())
    #expect(try await cache.entryCount == 2)

    // When
    try remove(folder.root + part)
    try FileManager.default.createSymbolicLink(atPath: folder.root + part, withDestinationPath: outside)

    // Then
    let other = CacheKey(resource: "other")
    _ = try? await cache.bytes(known)
    _ = try? await cache.trim(to: 0)
    _ = try? await cache.repair()
    #expect(try folder.files(below: outside).map { try file($0) } == before)
    for length in [9, 200_000] {
      #expect(await failure { try await cache.store(bytes(length), for: other, metadata: metadata()) }?.code == .fileSystem)
    }
    if part != "/tmp" { #expect(try await !cache.updateMetadata(of: key, to: stored, ifRevision: stored.revision)) }
    try? await cache.remove(key, ifRevision: nil)
    try? await cache.removeAll()
    #expect(try folder.files(below: outside).map { try file($0) } == before)
    try remove(folder.root + part)
    try await cache.store(bytes(9), for: other, metadata: metadata())
    #expect(try await cache.bytes(other) == bytes(9))
  }

  @Test("a folder in place of an entry is a miss and is replaced by a store")
  func folderInPlace() async throws {
    let cache = try DiskCache(path: folder.path)
    try await cache.store(bytes(5), for: key, metadata: metadata())
    let entryPath = folder.entryFiles[0]
    try remove(entryPath)
    try FileManager.default.createDirectory(atPath: entryPath + "/below", withIntermediateDirectories: true)
    #expect(try await cache.bytes(key) == nil)
    try await cache.store(bytes(6), for: key, metadata: metadata())
    #expect(try await cache.bytes(key) == bytes(6))
  }

  @Test("the files of an ended process are removed, and those of a live one stay")
  func orphans() async throws {
    let live = try folder.sharedCache()
    let writer = try await live.makeWriter(for: key, metadata: metadata())
    try await writer.write(bytes(200_000))
    #expect(try await live.entryCount == 0, "the work at opening is done")
    let spools = folder.temporaryFiles
    #expect(spools.count == 1)
    let tmp = folder.root + "/tmp"
    for name in ["99-00000000deadbeef.lock", "99-00000000deadbeef-1.spool", "98-00000000deadbeef-7.spool", "odd"] {
      try put(bytes(100), "\(tmp)/\(name)")
    }
    try FileManager.default.createDirectory(atPath: tmp + "/97-00000000deadbeef-1.trash/ab", withIntermediateDirectories: true)
    try put(bytes(100), tmp + "/97-00000000deadbeef-1.trash/ab/x.e")
    let other = try folder.sharedCache()
    #expect(try await other.entryCount == 0)
    #expect(folder.temporaryFiles == spools)
    #expect(!fileExists(tmp + "/97-00000000deadbeef-1.trash"))
    #expect(!fileExists(tmp + "/99-00000000deadbeef.lock"))
    _ = try await writer.commit(trailers: nil)
    #expect(try await other.bytes(key) == bytes(200_000))
  }

  @Test("the lock of an ended process stays taken until its files are removed")
  func orphanLock() async throws {
    try await DiskCache(path: folder.path).close()
    let owner = folder.root + "/tmp/99-00000000deadbeef"
    for name in [".lock", "-1.spool", "-2.spool"] { try put(bytes(10), owner + name) }
    let locked = Lock<[Bool]>([])
    var calls = FileCalls.system
    calls.unlink = { path in
      if path.hasPrefix(owner) {
        let descriptor = open(owner + ".lock", O_RDONLY | O_CLOEXEC)
        defer { unlockAndClose(descriptor) }
        locked.withLock { $0.append(descriptor >= 0 && flock(descriptor, LOCK_EX | LOCK_NB) != 0) }
      }
      return FileCalls.system.unlink(path)
    }
    let cache = try folder.sharedCache(calls: calls)
    #expect(try await cache.entryCount == 0)
    #expect(locked.withLock { $0 } == [true, true, true])
    #expect(!fileExists(owner + ".lock"))
  }

  @Test("a process killed during a write leaves the earlier entry readable and no partial entry")
  func killed() async throws {
    let cache = try DiskCache(path: folder.path)
    try await cache.store(bytes(300_000, seed: 1), for: key, metadata: metadata())
    let writer = try await cache.makeWriter(for: key, metadata: metadata())
    try await writer.write(bytes(200_000, seed: 2))
    // A later process would find what is on the disk now.
    let copy = try TemporaryFolder()
    try remove(copy.path)
    try FileManager.default.copyItem(atPath: folder.path, toPath: copy.path)
    #expect(copy.temporaryFiles.count == 1)
    let later = try DiskCache(path: copy.path)
    #expect(try await later.bytes(key) == bytes(300_000, seed: 1))
    #expect(try await later.entryCount == 1)
    #expect(copy.temporaryFiles.isEmpty)
    #expect(try await later.verify().isClean)
    writer.abort()
  }

  @Test("a read-only folder can be read, and writing throws an error", .enabled(if: !canWriteAnywhere))
  func readOnlyFolder() async throws {
    let writable = try DiskCache(path: folder.path)
    try await writable.store(bytes(5), for: key, metadata: metadata())
    await writable.close()
    let manager = FileManager.default
    let folders = [folder.root, folder.root + "/tmp", folder.root + "/entries"]
    for path in folders { try manager.setAttributes([.posixPermissions: 0o500], ofItemAtPath: path) }
    defer { for path in folders { try? manager.setAttributes([.posixPermissions: 0o700], ofItemAtPath: path) } }
    let cache = try DiskCache(path: folder.path)
    #expect(!cache.isWritable)
    #expect(try await cache.bytes(key) == bytes(5))
    #expect(await failure { try await cache.store(bytes(5), for: key, metadata: metadata()) }?.code == .readOnly)
    #expect(await failure { try await cache.remove(key, ifRevision: nil) }?.code == .readOnly)
    #expect(await failure { try await cache.remove([key]) }?.code == .readOnly)
    #expect(await failure { try await cache.markStale([key], at: metadata().responseTime) }?.code == .readOnly)
    try await cache.remove([])
    #expect(await failure { try await cache.removeAll() }?.code == .readOnly)
    #expect(throws: CacheError.self) { try DiskCache(path: folder.root + "/tmp/new") }
  }

  /// Root can write despite the permissions.
  static var canWriteAnywhere: Bool {
    let path = FileManager.default.temporaryDirectory.path + "/etagere-probe-\(Revision.random())"
    guard FileManager.default.createFile(atPath: path, contents: nil, attributes: [.posixPermissions: 0o400]) else { return true }
    defer { try? FileManager.default.removeItem(atPath: path) }
    return FileManager.default.isWritableFile(atPath: path)
  }
}
