import CacheCore
import CacheTesting
import Testing

@testable import DiskStore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Disk store: the index file")
struct IndexFileTests {
  let folder: TemporaryFolder
  private let count = IndexFile.fewest + 8

  init() throws { folder = try TemporaryFolder() }

  private var path: String { folder.root + "/index" }

  private func key(_ number: Int) -> CacheKey { CacheKey(resource: "\(number)", variant: number % 5 == 0 ? "v" : "") }

  private func open() throws -> DiskCache {
    try DiskCache(path: folder.path, configuration: .init(sizeLimit: nil, clock: ManualClock()))
  }

  /// Creates a folder with entries and an index. It adds one entry's file without incrementing the counters, so that only a list
  /// counts it.
  private func fill() async throws {
    let cache = try open()
    let extra = CacheKey(resource: "extra")
    try await cache.store(bytes(10), for: extra, metadata: metadata())
    let entryPath = try #require(folder.entryFiles.first)
    let whole = try file(entryPath)
    try await cache.remove(extra, ifRevision: nil)
    for number in 0..<count { try await cache.store(bytes(number % 50), for: key(number), metadata: metadata()) }
    await cache.close()
    try put(whole, entryPath)
  }

  private func isLoaded() async throws -> Bool {
    let cache = try open()
    let counted = try await cache.entryCount
    #expect([count, count + 1].contains(counted))
    if counted == count { #expect(try await cache.entry(for: CacheKey(resource: "extra")) == nil) }
    for number in 0..<count { #expect(try await cache.entry(for: key(number)) != nil) }
    return counted == count
  }

  @Test("an unchanged folder opens with its index and without a list, and the sizes match the files")
  func loaded() async throws {
    try await fill()
    let cache = try open()
    #expect(try await cache.entryCount == count)
    let size = try await cache.totalSize
    // Requesting all entries lists the files.
    let extra = try await cache.entries().first { $0.key == CacheKey(resource: "extra") }
    #expect(size + (extra?.size ?? 0) == (try await cache.totalSize))
    #expect(extra != nil)
    let sum = folder.allocatedSize
    #expect(try await cache.totalSize == sum)
    #expect(folder.temporaryFiles.isEmpty)
  }

  @Test("without a boot identifier there is no index: the files are listed at each opening, and every entry is found")
  func deniedBootID() async throws {
    // Given
    try await fill()
    let written = try file(path)
    var calls = FileCalls.system
    calls.bootID = { nil }

    // When
    let cache = try DiskCache(path: folder.path, configuration: .init(sizeLimit: nil, clock: ManualClock()), calls: calls)

    // Then
    #expect(try await cache.entryCount == count + 1)
    for number in 0..<count { #expect(try await cache.entry(for: key(number)) != nil) }
    await cache.close()
    #expect(try file(path) == written)
  }

  @Test("a stamp differs after a restart of the system, and there is none during a change or without a boot identifier")
  func stamps() {
    let key = SipHash.Key(first: 1, second: 2)
    let identity = FileStatus.Identity(device: 1, inode: 2)
    func stamp(_ boot: String?, _ started: UInt64 = 5) -> IndexFile.Stamp? {
      IndexFile.Stamp(boot: boot, key: key, identity, Generation.Counts(started: started, finished: 5))
    }
    #expect(stamp("a") == stamp("a"))
    #expect(stamp("a") != stamp("b"))
    for missing in [stamp(nil), stamp(""), stamp("a", 6)] { #expect(missing == nil) }
  }

  @Test("a later change by any process invalidates the index")
  func changed() async throws {
    try await fill()
    #expect(try await isLoaded())
    try folder.raise(.started)
    #expect(try await !isLoaded(), "the change has not ended")
    try folder.raise(.finished)
    #expect(try await !isLoaded())
  }

  @Test("a store that ends without closing leaves an invalid index", arguments: [true, false])
  func notClosed(stores: Bool) async throws {
    try await fill()
    let cache = try open()
    #expect(try await cache.entryCount == count)
    if stores {
      try await cache.store(bytes(10), for: key(0), metadata: metadata())
    } else {
      try await cache.remove(key(0), ifRevision: nil)
    }
    let next = try open()
    #expect(try await next.entryCount == (stores ? count + 1 : count), "the files are listed, including the extra one")
    #expect(try await next.bytes(key(0)) == (stores ? bytes(10) : nil))
  }

  @Test("a metadata update changes a size but no counter, so it removes the index first")
  func refreshed() async throws {
    try await fill()
    let cache = try open()
    #expect(try await cache.entryCount == count)
    let stored = try #require(try await cache.entry(for: key(1))).metadata
    #expect(try await cache.updateMetadata(of: key(1), to: stored, ifRevision: stored.revision))
    #expect(!fileExists(path))
    #expect(try await !isLoaded())
  }

  @Test("an index that is damaged, truncated, empty, a link or a folder is ignored", arguments: 0..<5)
  func damaged(way: Int) async throws {
    try await fill()
    var bytes = try file(path)
    try FileManager.default.removeItem(atPath: path)
    switch way {
    case 0:
      bytes[200] ^= 4
      try put(bytes, path)
    case 1: try put(bytes.prefix(1000), path)
    case 2: try put(Data(), path)
    case 3:
      try put(bytes, folder.path + "/elsewhere")
      try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: folder.path + "/elsewhere")
    default: try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }
    #expect(try await !isLoaded())
  }

  @Test("a copy of the folder has other counters, so its index is ignored")
  func copied() async throws {
    try await fill()
    let aside = folder.path + "/aside"
    try FileManager.default.moveItem(atPath: folder.root, toPath: aside)
    try FileManager.default.copyItem(atPath: aside, toPath: folder.root)
    #expect(try await !isLoaded())
  }

  @Test("new counters invalidate the index")
  func newCounters() async throws {
    try await fill()
    try FileManager.default.removeItem(atPath: folder.root + "/generation")
    let cache = try open()
    #expect(try await cache.entryCount == count + 1)
  }

  @Test("counters that start at zero remove the index first", arguments: [true, false])
  func countersFromZero(isCut: Bool) async throws {
    try await fill()
    let counters = folder.root + "/generation"
    if isCut { try put(Data(), counters) } else { try FileManager.default.removeItem(atPath: counters) }
    #expect(fileExists(path))
    _ = try StoreFolder(folder.path, .system, syncsFolders: false)
    #expect(!fileExists(path))
  }

  @Test("an index that another cache has written is removed before the next update")
  func writtenInBetween() async throws {
    try await fill()
    let (one, other) = (try open(), try open())
    for cache in [one, other] { #expect(try await cache.entryCount >= count, "the work at opening is done") }
    let stored = try #require(try await other.entry(for: key(1))).metadata
    #expect(try await other.updateMetadata(of: key(1), to: stored, ifRevision: stored.revision))
    try await one.store(bytes(10), for: CacheKey(resource: "new"), metadata: metadata())
    await one.close()
    #expect(fileExists(path))
    #expect(try await other.updateMetadata(of: key(1), to: stored, ifRevision: stored.revision))
    #expect(!fileExists(path))
  }

  @Test("without uses by others, the index is written without a list")
  func writtenWithoutList() async throws {
    try await fill()
    let cache = try open()
    #expect(try await cache.entryCount == count)
    try await cache.store(bytes(10), for: CacheKey(resource: "new"), metadata: metadata())
    await cache.close()
    #expect(try await open().entryCount == count + 1, "the extra one is not counted")
  }

  @Test("a few entries need no index, and a valid index is not written again")
  func written() async throws {
    let small = try open()
    for number in 0..<20 { try await small.store(bytes(10), for: key(number), metadata: metadata()) }
    await small.close()
    #expect(!fileExists(path))
    try await fill()
    let inode = try FileStatus(path: path).identity
    let cache = try open()
    #expect(try await cache.entryCount == count)
    await cache.close()
    #expect(try FileStatus(path: path).identity == inode)
  }

  /// Returns the values of `started` and `finished`.
  private func counters() throws -> [UInt64] {
    let bytes = try file(folder.root + "/generation")
    return [TemporaryFolder.Counter.started, .finished].map { counter in
      bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: counter.rawValue, as: UInt64.self) }
    }
  }

  /// Waits until no cache has the folder open. A closed cache lives until its threads have released it.
  private func alone() async throws {
    try await Polling.until { [path = folder.root + "/generation"] in
      guard let file = try? FileDescriptor(path, .readAndWrite) else { return false }
      // Unlocked explicitly, because a child process that another test is spawning has a copy.
      defer { file.unlock() }
      return file.lockExclusively()
    }
  }

  @Test("a cache that opens the folder alone makes a killed process's unequal counters equal and higher")
  func mended() async throws {
    // Given
    try await fill()
    try await alone()
    let before = try counters()
    try folder.raise(.started)
    var other: DiskCache?
    do {
      other = try open()
      try folder.raise(.started)
      // When
      let cache = try open()
      // The other cache may be in the middle of the change.
      #expect(try counters()[0] == counters()[1] + 1)
      #expect(try await cache.entryCount == count + 1)
      await cache.close()
      await other?.close()
    }
    other = nil
    try await alone()
    // When
    let cache = try open()
    // Then
    let after = try counters()
    #expect(after[0] == after[1])
    #expect(after[0] > before[0] + 2)
    #expect(try await cache.entryCount == count + 1, "an earlier index is ignored")
    #expect(try await cache.entry(for: CacheKey(resource: "nothing")) == nil)
  }

  @Test("changes are seen after counters were made equal")
  func mendedAndChanged() async throws {
    let key = CacheKey(resource: "r")
    do { await (try open()).close() }
    try await alone()
    try folder.raise(.finished)
    let one = try open()
    let two = try open()
    #expect(try counters()[0] == counters()[1])
    #expect(try await two.entryCount == 0)
    #expect(try await two.entry(for: key) == nil)
    try await one.store(bytes(10), for: key, metadata: metadata())
    #expect(try await two.bytes(key) == bytes(10))
  }

  // MARK: Bytes

  private let stamp = IndexFile.Stamp(
    boot: NameDigest(high: 1, low: 2), generation: .init(device: 3, inode: 4), count: 5)

  private func entries() -> [EntryName: EntryIndex.Use] {
    let hashKey = SipHash.Key(first: 1, second: 2)
    var entries: [EntryName: EntryIndex.Use] = [:]
    for (number, key) in [
      CacheKey(resource: "a"), CacheKey(resource: "a", variant: "v"), CacheKey(resource: "b", transform: "f"),
    ].enumerated() {
      entries[EntryName(key, hashKey: hashKey)] = EntryIndex.Use(
        size: Int64(number) * FileStatus.blockSize, last: Timestamp(nanoseconds: Int64(-number)))
    }
    return entries
  }

  private func decoded(_ bytes: [UInt8], _ stamp: IndexFile.Stamp) -> [EntryName: EntryIndex.Use]? {
    bytes.withUnsafeBytes { IndexFile.decoded($0, stamp) }
  }

  @Test("an encoded index is decoded only for the same boot, counter file and count")
  func roundTrip() throws {
    let bytes = IndexFile.encoded(ResourceTable(entries()), stamp)
    #expect(bytes.count == 64 + 3 * 56 + 4)
    let read = try #require(decoded(bytes, stamp))
    #expect(read.mapValues(\.size) == entries().mapValues(\.size))
    #expect(read.mapValues(\.last) == entries().mapValues(\.last))
    for (path, value) in [
      (\IndexFile.Stamp.boot.high, 0), (\.boot.low, 0), (\.generation.device, 0), (\.generation.inode, 0), (\.count, 4),
    ] as [(WritableKeyPath<IndexFile.Stamp, UInt64>, UInt64)] {
      var other = stamp
      other[keyPath: path] = value
      #expect(decoded(bytes, other) == nil)
    }
  }

  @Test("an index of an earlier version, with the sizes of files, is read as one with allocated sizes")
  func earlierSizes() throws {
    let name = try #require(entries().keys.first)
    for (size, allocated) in [(0, 0), (1, 4_096), (4_096, 4_096), (4_097, 8_192), (100_000, 102_400)] as [(Int64, Int64)] {
      let table = ResourceTable([name: EntryIndex.Use(size: size, last: Timestamp(nanoseconds: 0))])
      #expect(try #require(decoded(IndexFile.encoded(table, stamp), stamp))[name]?.size == allocated)
    }
  }

  @Test("no flipped bit and no missing or added byte goes undetected")
  func flips() {
    let bytes = IndexFile.encoded(ResourceTable(entries()), stamp)
    for bit in 0..<bytes.count * 8 {
      var flipped = bytes
      flipped[bit / 8] ^= 1 << UInt8(bit % 8)
      #expect(decoded(flipped, stamp) == nil, "bit \(bit)")
    }
    for length in 0..<bytes.count { #expect(decoded(Array(bytes.prefix(length)), stamp) == nil) }
    #expect(decoded(bytes + [0], stamp) == nil)
    #expect(decoded(bytes + bytes, stamp) == nil)
  }

  @Test("impossible sizes and kinds make an index invalid even with a matching checksum")
  func impossible() {
    let bytes = IndexFile.encoded(ResourceTable(entries()), stamp)
    for (offset, value) in [(64 + 32, 3), (64 + 40, UInt64.max), (64 + 40, 1 << 60)] as [(Int, UInt64)] {
      var changed = Array(bytes.dropLast(4))
      withUnsafeBytes(of: value.littleEndian) { changed.replaceSubrange(offset..<offset + 8, with: $0) }
      withUnsafeBytes(of: changed.withUnsafeBytes { crc32c($0) }.littleEndian) { changed += $0 }
      #expect(decoded(changed, stamp) == nil)
    }
  }
}
