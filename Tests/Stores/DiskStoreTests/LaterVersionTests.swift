import CacheCore
import CacheTesting
import GoldenEntries
import HTTPTypes
import Testing

@testable import DiskStore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Disk store: folders and entries of a later version")
struct LaterVersionTests {
  private let folder: TemporaryFolder
  private let key = CacheKey(resource: "https://example.com/later")

  init() throws { folder = try TemporaryFolder() }

  /// Returns a key file of a version.
  private func keyFile(version: UInt32, length: Int) -> Data {
    var writer = ByteWriter()
    writer.raw(FolderKey.magic)
    writer.integer(version)
    writer.raw(bytes(length - 16))
    writer.checksum(from: 0)
    return Data(writer.bytes)
  }

  // MARK: Folders

  @Test(
    "a folder of a later version is refused with both versions, and not a byte of it changes",
    arguments: [(2, 32), (3, 16), (700, 4_096)] as [(UInt32, Int)], [true, false])
  func refused(_ file: (version: UInt32, length: Int), isWritable: Bool) throws {
    try Golden.copy(1, to: folder)
    try put(keyFile(version: file.version, length: file.length), folder.root + "/folder.key")
    try put(bytes(500), folder.root + "/generation")
    try put(bytes(500), folder.root + "/catalog")
    let before = try FolderContents(of: folder.path)
    var calls = FileCalls.system
    if !isWritable { calls.isWritable = { _ in false } }

    let error = #expect(throws: CacheError.self) {
      try DiskCache(path: folder.path, configuration: Golden.configuration(), calls: calls)
    }

    #expect(error?.code == .unsupported && error?.path == folder.root)
    #expect(error?.reason.contains("version \(file.version)") == true && error?.reason.contains("only version 1") == true)
    #expect(try FolderContents(of: folder.path) == before)
  }

  @Test("an open cache changes nothing in a folder that a later version has created in the place of its own")
  func replacedFolder() async throws {
    let cache = try folder.sharedCache()
    let stored = try await cache.store(bytes(5), for: key, metadata: metadata())
    try FileManager.default.removeItem(atPath: folder.root)
    try FileManager.default.createDirectory(atPath: folder.root, withIntermediateDirectories: true)
    try put(keyFile(version: 2, length: 32), folder.root + "/folder.key")
    let before = try FolderContents(of: folder.path)

    for length in [5, 200_000] {
      let error = await failure { try await cache.store(bytes(length), for: key, metadata: metadata()) }
      #expect(error?.code == .unsupported && error?.reason.contains("version 2") == true)
    }
    #expect(try await cache.bytes(key) == nil)
    #expect(try await !cache.updateMetadata(of: key, to: stored, ifRevision: stored.revision))
    try await cache.remove(key, ifRevision: nil)
    try? await cache.removeAll()
    _ = try? await cache.repair()
    await cache.close()

    #expect(try FolderContents(of: folder.path) == before)
  }

  @Test("a key file of version 0 is damaged, and a damaged one is not taken for that of a later version")
  func damagedMarkers() throws {
    let later = keyFile(version: 2, length: 32)
    #expect(FolderKey.laterVersion(Array(later)) == 2)
    var damaged = [keyFile(version: 0, length: 32), keyFile(version: 2, length: 5_000), later.prefix(15), Data()]
    for offset in later.indices {
      var file = later
      file[offset] ^= 2
      damaged.append(file)
    }
    for file in damaged { #expect(FolderKey.laterVersion(Array(file)) == nil && FolderKey.decoded(Array(file)) == nil) }
  }

  // MARK: Additions

  /// Rewrites an entry as a later version may: with unknown flags, content in the gaps and in the reserved bytes of the header,
  /// other offsets, and unknown parts in the metadata.
  private func extended(_ entry: Data) throws -> Data {
    let (old, sequence, payload) = try newest(in: entry)
    var header = old
    header.keyOffset += 72
    header.bodyOffset += 333
    header.tableOffset += 444
    header.metadataOffset += 1_024
    var file = Data(repeating: 0x5A, count: Int(header.metadataOffset))
    func copy(_ length: UInt64, from: UInt64, to: UInt64) {
      file.replaceSubrange(Int(to)..<Int(to + length), with: entry[Int(from)..<Int(from + length)])
    }
    copy(old.keyLength, from: old.keyOffset, to: header.keyOffset)
    copy(old.bodyLength, from: old.bodyOffset, to: header.bodyOffset)
    copy(old.tableLength, from: old.tableOffset, to: header.tableOffset)
    file.replaceSubrange(0..<128, with: Self.changed(Data(header.encoded()), flags: 0x8001_0000, reserved: 0x5A))
    let changed = payload.prefix(1) + Self.unknown + payload.dropFirst() + Self.unknown
    return file + MetadataRecord.encoded(sequence: sequence + 1, revision: header.revision, payload: changed)
  }

  /// A part of metadata that this version does not know.
  private static let unknown = Data([200, 3, 0, 0, 0, 1, 2, 3])

  /// Returns the header of an entry, and its newest record.
  private func newest(in entry: Data) throws -> (header: EntryHeader, sequence: UInt64, payload: Data) {
    try entry.withUnsafeBytes { bytes in
      guard case .header(let header) = EntryHeader.parse(bytes, fileSize: Int64(bytes.count)) else {
        throw CacheError(.damagedEntry, reason: "no header")
      }
      let area = bytes.part(Int(header.metadataOffset)..<bytes.count)
      let newest = try #require(MetadataArea.newest(in: area, revision: header.revision))
      return (header, newest.sequence, Data(area.part(newest.payload)))
    }
  }

  /// Returns a header with other flags, another version, or other bytes in its reserved part, and a correct checksum.
  private static func changed(_ header: Data, version: UInt8 = 1, flags: UInt32 = 0, reserved: UInt8 = 0) -> Data {
    var header = header
    header[8] = version
    header.replaceSubrange(12..<16, with: withUnsafeBytes(of: flags.littleEndian) { Data($0) })
    header.replaceSubrange(96..<124, with: Data(repeating: reserved, count: 28))
    return header.prefix(124) + withUnsafeBytes(of: crc(header.prefix(124)).littleEndian) { Data($0) }
  }

  @Test("a later version may add flags, files and parts of the metadata while this version uses the folder")
  func sideBySide() async throws {
    let cache = try Golden.opened(1, in: folder)
    let other = try DiskCache(path: folder.path, configuration: Golden.configuration())
    let entries = GoldenEntry.version1
    #expect(try await GoldenEntry.differences(entries, in: cache) == [])
    // When
    for path in folder.entryFiles { try folder.place(extended(file(path)), path) }
    let resource = try #require(folder.entryFiles.first { $0.hasSuffix(".f") }?.dropLast(35))
    let inside = ["/entries/later", "/entries/ff.later", String(resource.dropFirst(folder.root.count)) + "/later"]
    for name in ["/later"] + inside { try put(bytes(9), folder.root + name) }
    // Then
    for cache in [cache, other] { #expect(try await GoldenEntry.differences(entries, in: cache) == []) }
    for entry in entries {
      var metadata = entry.metadata
      metadata.response.headerFields[.server] = "updated"
      #expect(try await cache.updateMetadata(of: entry.key, to: metadata, ifRevision: metadata.revision))
      #expect(try await other.entry(for: entry.key)?.metadata == metadata)
      #expect(try await other.bytes(entry.key) == entry.body)
    }
    #expect(try !newest(in: file(folder.entryFiles[0])).payload.contains(Self.unknown), "an update drops unknown parts")
    #expect(try await other.verify().good == entries.count)
    for path in folder.entryFiles where !inside.contains(String(path.dropFirst(folder.root.count))) {
      #expect(try file(path)[12..<16] == Data([0, 0, 1, 0x80]), "an update leaves the unknown flags")
    }
    #expect(try await cache.trim(to: 0) == entries.count)
    for name in ["/later"] + inside { #expect(try file(folder.root + name) == bytes(9)) }
    try await cache.store(bytes(5), for: key, metadata: metadata())
    try await other.removeAll()
    #expect(try await cache.bytes(key) == nil)
    #expect(folder.entryFiles == [] && fileExists(folder.root + "/later"))
    for cache in [cache, other] { await cache.close() }
  }

  @Test("a folder of a later layout and this one's are used side by side, and neither changes the other")
  func otherLayout() async throws {
    let later = folder.path + "/etagere-2"
    try FileManager.default.copyItem(atPath: Golden.folder(1) + "/etagere-1", toPath: later)
    try put(keyFile(version: 2, length: 64), later + "/folder.key")
    let before = try FolderContents(of: later)
    let cache = try DiskCache(path: folder.path, configuration: .init(sizeLimit: 100_000))
    for number in 0..<30 { try await cache.store(bytes(9_000), for: CacheKey(resource: "\(number)"), metadata: metadata()) }
    try await cache.repair()
    try await cache.removeAll()
    await cache.close()
    #expect(try FolderContents(of: later) == before)
  }

  // MARK: Entries

  /// Stores an entry and changes its header.
  private func storeLater(_ cache: DiskCache, version: UInt8, flags: UInt32) async throws -> StoredMetadata {
    let stored = try await cache.store(bytes(9), for: key, metadata: metadata(expiration: .after(.seconds(60))))
    let path = try #require(folder.entryFiles.first)
    let entry = try file(path)
    try folder.place(Self.changed(entry.prefix(128), version: version, flags: flags) + entry.dropFirst(128), path)
    return stored
  }

  @Test(
    "an entry of a later format is left alone until it is replaced, evicted or removed",
    arguments: [(2, 0), (1, 1), (1, 0x8000)] as [(UInt8, UInt32)])
  func laterEntry(version: UInt8, flags: UInt32) async throws {
    let clock = ManualClock()
    let (cache, other) = (try folder.sharedCache(clock: clock), try folder.sharedCache(clock: clock))
    let stored = try await storeLater(cache, version: version, flags: flags)
    let path = folder.entryFiles[0]
    let before = try file(path)
    clock.advance(by: .seconds(100))

    #expect(try await cache.bytes(key) == nil)
    #expect(try await cache.entries(of: key.resource).isEmpty)
    #expect(try await cache.entries().isEmpty)
    #expect(try await !cache.updateMetadata(of: key, to: stored, ifRevision: stored.revision))
    try await cache.markStale([key], at: clock.now)
    try await cache.remove(key, ifRevision: stored.revision)
    #expect(try await cache.removeExpired() == 0)
    let report = try await cache.repair()
    #expect(report.newer == 1 && report.damaged.isEmpty)
    #expect(try file(path) == before)
    #expect(try await cache.entryCount == 1, "it counts against the limit")

    try await cache.store(bytes(5), for: key, metadata: metadata(at: clock.now))
    #expect(try await cache.bytes(key) == bytes(5))
    for removal in ["evict", "remove", "remove all"] {
      _ = try await storeLater(cache, version: version, flags: flags)
      switch removal {
      case "evict": #expect(try await cache.trim(to: 0) == 1)
      case "remove": try await cache.remove(key, ifRevision: nil)
      default: try await cache.removeAll()
      }
      #expect(folder.entryFiles == [], "\(removal)")
    }
    for cache in [cache, other] { await cache.close() }
  }
}
