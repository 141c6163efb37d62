import CacheCore
import CacheTesting
import DiskStore
import Foundation

/// One of several processes that store, read, update and remove the same entries for some time.
struct HammerWorker {
  static let keys = 2_000

  private let folder: String
  private var generator: SplitMix
  private let worker: UInt64
  private let seconds: Int64
  private let limit: Int64

  init(arguments: ArraySlice<String>) throws {
    let words = Array(arguments)
    guard words.count == 5, let seed = UInt64(words[1]), let worker = UInt64(words[2]), let seconds = Int64(words[3]),
      let limit = Int64(words[4])
    else { throw FailedCheck("'hammer' needs a folder, a seed, a number, seconds and a limit") }
    (folder, self.worker, self.seconds, self.limit) = (words[0], worker, seconds, limit)
    generator = SplitMix(state: seed &+ worker)
  }

  mutating func run() async throws {
    do {
      try await hammer()
    } catch {
      Children.tell("failed \(error)")
    }
  }

  private mutating func hammer() async throws {
    let cache = try DiskCache(path: folder, configuration: .init(sizeLimit: limit))
    let clock = SystemClock()
    let end = clock.uptime + .seconds(seconds)
    var number = worker << 40
    var (asked, stored) = (0, 0)
    while clock.uptime < end {
      number += 1
      let key = Keys.key(Int.random(in: 0..<Self.keys, using: &generator))
      switch Int.random(in: 0..<100, using: &generator) {
      case 0..<45:
        let value = Value(number: number, length: Value.length(&generator))
        try await cache.store(value.bytes, for: key, metadata: value.metadata)
        stored += 1
      case 45..<50:
        try await cache.remove(key, ifRevision: nil)
      case 50..<58:
        asked += 1
        guard let entry = try await cache.entry(for: key) else { continue }
        var value = try await Value(of: entry, for: key)
        // Each process uses its own numbers for updates.
        value.updateCount = number
        _ = try await cache.updateMetadata(of: key, to: value.metadata, ifRevision: value.revision)
      case 58..<66:
        asked += 1
        for entry in try await cache.variants(of: key.resource) { _ = try await Value(of: entry, for: entry.key) }
      default:
        asked += 1
        if let entry = try await cache.entry(for: key) { _ = try await Value(of: entry, for: key) }
      }
    }
    await cache.close()
    let counters = cache.counters
    try require(counters.hits + counters.misses == asked, "\(counters): there were \(asked) lookups")
    try require(counters.writes == stored && counters.failedWrites == 0, "\(counters): there were \(stored) stores")
    try require(counters.damaged == 0 && counters.failedRemovals == 0 && counters.fullDisk == 0, "\(counters)")
    Children.tell("stored \(stored)")
    Children.tell("hits \(counters.hits)")
    Children.tell("misses \(counters.misses)")
    Children.tell("evictions \(counters.evictions[.size, default: 0])")
  }
}
