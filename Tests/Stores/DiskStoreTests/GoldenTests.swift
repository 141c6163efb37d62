import CacheCore
import CacheTesting
import DiskStore
import GoldenEntries
import HTTPTypes
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The folders that earlier versions have written, in `Tests/Support/Golden` (`disk-1` and so on).
enum Golden {
  /// The version that is written now.
  static let current = 1

  static func folder(_ version: Int) -> String { GoldenFiles.path("disk-\(version)") }

  /// The list of the times of the last uses, because git does not keep the times of files.
  static let times = "/last-uses.txt"

  static func configuration(_ clock: ManualClock = ManualClock(now: GoldenEntry.end)) -> DiskCache.Configuration {
    .init(eviction: LeastRecentlyUsed(), clock: clock)
  }

  /// Copies a folder, with the times of its files.
  static func copy(_ version: Int, to folder: TemporaryFolder) throws {
    let golden = Self.folder(version)
    try FileManager.default.copyItem(atPath: golden + "/etagere-1", toPath: folder.root)
    for line in String(decoding: try file(golden + times), as: UTF8.self).split(separator: "\n") {
      let parts = line.split(separator: " ")
      let time = Date(timeIntervalSince1970: try #require(Double(parts[1])))
      try FileManager.default.setAttributes([.modificationDate: time], ofItemAtPath: "\(folder.root)/\(parts[0])")
    }
  }

  /// Opens a copy, at a time when none of its entries has expired.
  static func opened(_ version: Int, in folder: TemporaryFolder) throws -> DiskCache {
    try copy(version, to: folder)
    return try DiskCache(path: folder.path, configuration: configuration())
  }

  /// Writes entries as this version does, under the folder's existing key if it has one.
  static func write(_ entries: [GoldenEntry], in folder: TemporaryFolder) async throws {
    let clock = ManualClock(now: GoldenEntry.start)
    let cache = try DiskCache(path: folder.path, configuration: configuration(clock))
    try await GoldenEntry.write(entries, to: cache, clock)
    await cache.close()
  }
}

@Suite("Golden files: folders that an earlier version has written")
struct GoldenTests {
  private let entries = GoldenEntry.version1

  @Test("every entry is read byte for byte and field for field, by each kind of lookup")
  func reads() async throws {
    let folder = try TemporaryFolder()
    let cache = try Golden.opened(1, in: folder)

    #expect(try await GoldenEntry.differences(entries, in: cache) == [])

    let report = try await cache.verify()
    #expect(report.good == entries.count && report.damaged.isEmpty && report.newer == 0)
    #expect(cache.counters.damaged == 0)
    await cache.close()
  }

  @Test("the times of the last uses are known, and the least recently used entries are evicted first")
  func evicts() async throws {
    let folder = try TemporaryFolder()
    let cache = try Golden.opened(1, in: folder)
    for listed in try await cache.entries() {
      let index = try #require(entries.firstIndex { $0.key == listed.key })
      #expect(listed.lastUsed == GoldenEntry.lastUse(ofEntryAt: index, in: entries), "\(entries[index])")
      #expect(listed.storedAt == GoldenEntry.start)
    }
    for count in (0..<entries.count).reversed() {
      #expect(try await cache.trim(to: cache.totalSize - 1) == 1)
      #expect(try await Set(cache.entries().map(\.key)) == Set(entries.prefix(count).map(\.key)))
    }
    await cache.close()
  }

  @Test("entries can be updated, replaced and removed")
  func changed() async throws {
    let folder = try TemporaryFolder()
    let cache = try Golden.opened(1, in: folder)
    #expect(try await GoldenEntry.differencesAfterChanges(entries, in: cache) == [])
    #expect(folder.entryFiles == [])
    await cache.close()
  }

  @Test("entries can be purged: marked stale, and removed by tag, by key, by name and all at once")
  func purged() async throws {
    let folder = try TemporaryFolder()
    let cache = try Golden.opened(1, in: folder)
    #expect(try await GoldenEntry.differencesAfterPurges(entries, in: cache) == [])
    #expect(folder.entryFiles == [])
    await cache.close()
  }

  @Test("this version writes the same files byte for byte, with the same times")
  func writes() async throws {
    let (folder, expected) = (try TemporaryFolder(), try TemporaryFolder())
    try Golden.copy(Golden.current, to: expected)
    try FileManager.default.createDirectory(atPath: folder.root, withIntermediateDirectories: true)
    try FileManager.default.copyItem(atPath: expected.root + "/folder.key", toPath: folder.root + "/folder.key")

    try await Golden.write(entries, in: folder)

    let names = folder.entryFiles.map { String($0.dropFirst(folder.root.count)) }
    #expect(names == expected.entryFiles.map { String($0.dropFirst(expected.root.count)) } && names.count == entries.count)
    for name in names {
      #expect(try file(folder.root + name) == file(expected.root + name), "\(name)")
      #expect(try modified(folder.root + name) == modified(expected.root + name), "\(name)")
    }
  }

  private func modified(_ path: String) throws -> Date? {
    try FileManager.default.attributesOfItem(atPath: path)[.modificationDate] as? Date
  }

  /// `Scripts/golden` creates the folder of a new version. The entries of an existing folder are never written again, because
  /// they represent existing caches.
  @Test("the folder of a new version is created on request", .enabled(if: GoldenFiles.isRequested))
  func makes() async throws {
    let target = Golden.folder(Golden.current)
    guard !fileExists(target + "/etagere-1/entries") else { return }
    let folder = try TemporaryFolder()
    try await Golden.write(entries, in: folder)
    try FileManager.default.createDirectory(atPath: target + "/etagere-1", withIntermediateDirectories: true)
    for name in ["folder.key", "generation", "entries"] {
      try FileManager.default.copyItem(atPath: "\(folder.root)/\(name)", toPath: "\(target)/etagere-1/\(name)")
    }
    let times = try folder.entryFiles.map { path in
      let time = try #require(try modified(path))
      return "\(path.dropFirst(folder.root.count + 1)) \(Int(time.timeIntervalSince1970))\n"
    }
    try put(Data(times.joined().utf8), target + Golden.times)
  }
}
