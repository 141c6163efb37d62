import CacheCore
import DiskStore
import Foundation

/// A folder with many entries. One process fills it, and another one opens, lists and trims it.
struct DiskFolderJob: Job {
  static let name = "disk-folder"
  /// The size of a body in bytes.
  static let size = 4096

  let folder: String
  let entries: Int
  /// The number of entries to trim.
  let trimmed: Int
  let fills: Bool

  func run() async throws -> Measurement { fills ? try await fill() : try await measure() }

  private func configuration() -> DiskCache.Configuration { .init(sizeLimit: nil) }

  private func fill() async throws -> Measurement {
    try fillBare()
    let cache = try DiskCache(path: folder, configuration: configuration())
    let work = DiskWork(cache)
    let body = Pattern.bytes(Self.size)
    for number in 0..<entries { try work.store(body, for: DiskEntries.key(number), metadata: DiskEntries.metadata()) }
    var measurement = Measurement()
    measurement.check("entries", try await cache.entryCount, is: entries)
    await cache.close()
    return measurement
  }

  /// The size in bytes of an entry's file, which stores the body and its metadata.
  private static let fileSize = 5120

  private var barePaths: [String] {
    (0..<trimmed).map { "\(folder)/files/\($0 % 256)/0123456789abcdef0123456789ab\(100_000 + $0)" }
  }

  /// Writes bare files of the entries' size before the entries, so that neither are the most recently used files of the system.
  private func fillBare() throws {
    for shard in 0..<256 {
      try FileManager.default.createDirectory(atPath: "\(folder)/files/\(shard)", withIntermediateDirectories: true)
    }
    let bytes = Pattern.bytes(Self.fileSize)
    for path in barePaths { try RawFile.write(bytes, path, draft: folder + "/files/draft", flushes: false) }
  }

  private func measure() async throws -> Measurement {
    var measurement = Measurement()
    let clock = SystemClock()
    let start = clock.uptime
    let cache = try DiskCache(path: folder, configuration: configuration())
    let first = try await cache.entry(for: DiskEntries.key(entries / 2))?.body.collect()
    measurement.add(clock.uptime - start, to: .firstAnswer)
    let size = try await cache.totalSize
    measurement.add(clock.uptime - start, to: .wholeIndex)
    measurement.check("bytes of the first entry", first?.count ?? 0, is: Self.size)
    measurement.check("entries", try await cache.entryCount, is: entries)
    try list(cache, &measurement)
    try await trim(cache, from: size, &measurement)
    await cache.close()
    return measurement
  }

  private func list(_ cache: DiskCache, _ measurement: inout Measurement) throws {
    let clock = SystemClock()
    let work = DiskWork(cache)
    for _ in 0..<3 {
      var start = clock.uptime
      let raw = try RawFile.list(cache.path + "/etagere-1/entries")
      measurement.add(clock.uptime - start, to: .rawList)
      start = clock.uptime
      let own = try work.list()
      measurement.add(clock.uptime - start, to: .list)
      measurement.check("files", raw.count, is: own)
    }
  }

  private func trim(_ cache: DiskCache, from size: Int64, _ measurement: inout Measurement) async throws {
    let clock = SystemClock()
    var start = clock.uptime
    for path in barePaths { try RawFile.remove(path) }
    measurement.add(clock.uptime - start, to: .raw)
    // The most recently used entries are not trimmed.
    let loaded = (entries - 500..<entries).map(DiskEntries.key)
    for _ in 0..<2 { measurement[.called] = try await load(loaded, cache) }
    let left = AtomicCounter()
    async let meanwhile = loadUntil(left, loaded, cache)
    start = clock.uptime
    let removed = try await cache.trim(to: size / Int64(entries) * Int64(entries - trimmed))
    measurement.add(clock.uptime - start, to: .own)
    left.step()
    measurement[.meanwhile] = try await meanwhile
    measurement.check("trimmed entries", removed, is: trimmed)
  }

  private func loadUntil(_ end: AtomicCounter, _ keys: [CacheKey], _ cache: DiskCache) async throws -> [Double] {
    var times: [Double] = []
    while end.value == 0 { times += try await load(Array(keys.prefix(50)), cache) }
    return times
  }

  /// Reads entries.
  ///
  /// - Returns: The time of each read in seconds.
  private func load(_ keys: [CacheKey], _ cache: DiskCache) async throws -> [Double] {
    let clock = SystemClock()
    var times: [Double] = []
    for key in keys {
      let start = clock.uptime
      guard try await cache.entry(for: key) != nil else { throw BenchmarkFailure("an entry is missing") }
      times.append((clock.uptime - start) / .seconds(1))
    }
    return times
  }
}
