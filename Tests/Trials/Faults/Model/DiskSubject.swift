import CacheCore
import DiskStore

/// Disk caches on one folder.
struct DiskSubject: Subject {
  private let path: String
  private let limit: Int64?
  private let clock: any CacheClock
  private let number: Int
  private var caches: [DiskCache] = []
  private var earlier = 0

  /// - Parameter number: The number of caches.
  init(_ path: String, limit: Int64?, number: Int, _ clock: any CacheClock) throws {
    (self.path, self.limit, self.number, self.clock) = (path, limit, number, clock)
    try open()
  }

  private mutating func open() throws {
    caches = try (0..<number).map { _ in try DiskCache(path: path, configuration: .init(sizeLimit: limit, clock: clock)) }
  }

  var name: String { "DiskCache, \(number == 1 ? "one" : "\(number) on one folder")\(limit == nil ? "" : ", with a size limit")" }

  var stores: [any CacheStore] { caches }

  mutating func reopen() async throws {
    try await close()
    earlier = evictions
    try open()
  }

  func settle() async throws {
    // Each count waits for sweeps in progress.
    for cache in caches { _ = try await cache.entryCount }
  }

  var evictions: Int {
    caches.reduce(earlier) { sum, cache in
      let evictions = cache.counters.evictions
      return sum + evictions[.size, default: 0] + evictions[.trimmed, default: 0]
    }
  }

  func trim(to size: Int64) async throws -> Int? {
    let removed = try await caches[0].trim(to: size)
    let left = try await caches[number - 1].totalSize
    try require(left <= size, "\(left) bytes are left after a trim to \(size)")
    return removed
  }

  func removeExpired() async throws { _ = try await caches[number - 1].removeExpired() }

  func count() async throws -> Int? {
    let size = Folder.size(path + "/etagere-1/entries")
    let first = try await caches[0].entryCount
    for cache in caches {
      let (count, counted) = (try await cache.entryCount, try await cache.totalSize)
      try require(count == first, "the caches on one folder count \(count) and \(first) entries")
      // Another cache's metadata updates count when the entry is read or the files are listed.
      try require(counted <= size && (number > 1 || counted == size), "\(counted) bytes are counted, but the files have \(size)")
    }
    return first
  }

  func close() async throws { for cache in caches { await cache.close() } }
}
