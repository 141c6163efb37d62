import CacheCore
import CacheTesting
import DiskStore
import Foundation

/// The process that damages a folder and reads it.
final class FlipRun {
  /// The number of keys, enough for the store to write an index file.
  static let keys = 560

  let root: String
  let path: String
  private let count: Int
  var generator: SplitMix
  var cache: DiskCache
  var paths: [CacheKey: String] = [:]
  /// The stored values by key number.
  var values: [Int: Value] = [:]
  /// The keys whose damaged file still exists, with every update that may be visible again.
  var touched: [Int: Set<UInt64>] = [:]
  var number: UInt64 = 0
  var done = 0
  var tallies: [String: Int] = [:]

  init(arguments: ArraySlice<String>) throws {
    let words = Array(arguments)
    guard words.count == 3, let seed = UInt64(words[1]), let count = Int(words[2]) else {
      throw FailedCheck("'flips' needs a folder, a seed and a count")
    }
    path = words[0]
    root = path + "/etagere-1"
    self.count = count
    generator = SplitMix(state: seed)
    cache = try Self.opened(path)
  }

  static func opened(_ path: String) throws -> DiskCache {
    // Without a size limit nothing is evicted, so a missing entry must have been damaged.
    try DiskCache(path: path, configuration: .init(sizeLimit: nil))
  }

  func run() async throws {
    do {
      try await fill()
      while done < count {
        if done.isMultiple(of: 100) { Children.tell("at damage \(done)") }
        try await step()
      }
      try await whole()
      tell()
    } catch {
      Children.tell("failed damage \(done): \(error)")
    }
  }

  private func tell() {
    let ways = Damage.allCases.map { "\($0.rawValue) \(grouped(tallies[$0.rawValue, default: 0]))" }.joined(separator: ", ")
    Children.tell("\(grouped(done)) damages of entries and of other files, \(grouped(Self.keys)) entries")
    Children.tell("entries: \(ways); swapped pairs \(grouped(tallies["swapped", default: 0]))")
    Children.tell(
      "other files: index \(grouped(tallies["index", default: 0])), generation \(grouped(tallies["generation", default: 0])), "
        + "folder.key \(grouped(tallies["folder.key", default: 0]))")
    let outcomes = [
      "misses", "streams that ended with an error", "correct", "stored again", "found by verify",
    ].map { "\($0) \(grouped(tallies[$0, default: 0]))" }.joined(separator: ", ")
    Children.tell("reads afterwards: \(outcomes); wrong bytes 0, traps 0")
  }

  func tally(_ what: String, _ by: Int = 1) { tallies[what, default: 0] += by }

  // MARK: Setup

  /// Stores every missing key and locates its file.
  func fill() async throws {
    for key in 0..<Self.keys where values[key] == nil { try await store(key) }
    paths = try EntryPaths.find(below: root + "/entries")
    try require(paths.count == Self.keys, "\(paths.count) files for \(Self.keys) keys")
  }

  func store(_ key: Int) async throws {
    number += 1
    let value = Value(number: number, length: Value.length(&generator))
    try await cache.store(value.bytes, for: Keys.key(key), metadata: value.metadata)
    values[key] = value
    touched[key] = nil
  }

  func file(_ key: Int) throws -> String {
    guard let path = paths[Keys.key(key)] else { throw FailedCheck("\(Keys.key(key)) has no file") }
    return path
  }

  // MARK: Steps

  private func step() async throws {
    let key = Int.random(in: 0..<Self.keys, using: &generator)
    switch Int.random(in: 0..<1_000, using: &generator) {
    case 0..<4: try await damageFolderKey()
    case 4..<16: try await damageIndex()
    case 16..<28: try await damageGeneration()
    case 28..<36: try await damageMany()
    case 36..<110: try await swap(key)
    default:
      if Int.random(in: 0..<8, using: &generator) == 0 { try await refresh(key) }
      try damage(key)
      try await look(key)
      try await heal(key)
    }
    if Bool.random(using: &generator) { try await bystander() }
  }

  func damage(_ key: Int) throws {
    let damage = Damage.random(&generator)
    let other = ["folder.key", "generation", "index"].randomElement(using: &generator) ?? ""
    try damage.apply(to: try file(key), other: "\(root)/\(other)", &generator)
    done += 1
    tally(damage.rawValue)
    if touched[key] == nil { touched[key] = [values[key]?.updateCount ?? 0] }
    // Earlier updates may be visible again.
    touched[key]?.formUnion(0...(values[key]?.updateCount ?? 0))
  }

  private func refresh(_ key: Int) async throws {
    guard touched[key] == nil, var value = values[key] else { return }
    for _ in 0..<Int.random(in: 1...3, using: &generator) {
      value.updateCount += 1
      let isThere = try await cache.updateMetadata(of: Keys.key(key), to: value.metadata, ifRevision: value.revision)
      try require(isThere, "\(Keys.key(key)) is missing and cannot be updated")
      values[key] = value
    }
  }

  /// Reads a damaged entry in one of several ways. The result must be correct or a counted miss.
  func look(_ key: Int) async throws {
    let before = cache.counters
    let path = try file(key)
    let way = Int.random(in: 0..<8, using: &generator)
    let length = Int64(values[key]?.length ?? 0)
    let start = Int64.random(in: 0...length, using: &generator)
    let range = way < 2 ? start..<Int64.random(in: start...length + 10, using: &generator) : nil
    guard let entry = try await cache.entry(for: Keys.key(key), range: range) else {
      let after = cache.counters
      try require(after.misses == before.misses + 1, "a miss of \(Keys.key(key)) was not counted")
      try require(after.damaged == before.damaged + 1, "damage of \(Keys.key(key)) was not counted")
      try require(access(path, F_OK) != 0, "\(path) is damaged, but was not removed")
      tally("misses")
      values[key] = nil
      return
    }
    if try await isWhole(entry, key, range) { return tally("correct") }
    tally("streams that ended with an error")
    try require(cache.counters.damaged == before.damaged + 1, "damage of \(Keys.key(key)) was not counted")
    try require(access(path, F_OK) != 0, "\(path) is damaged, but was not removed")
    values[key] = nil
  }

  /// Returns whether a body could be read to its end. The bytes before a failure must be correct.
  func isWhole(_ entry: StoredEntry, _ key: Int, _ range: Range<Int64>?) async throws -> Bool {
    guard let expected = values[key] else { throw FailedCheck("\(Keys.key(key)) is removed, but was found") }
    let found = try Value(checking: entry.metadata, for: Keys.key(key))
    try require(entry.key == Keys.key(key), "\(Keys.key(key)): the entry is that of \(entry.key)")
    try require(
      found.number == expected.number && (touched[key] ?? [expected.updateCount]).contains(found.updateCount),
      "\(Keys.key(key)): value \(found.number), update \(found.updateCount), instead of \(expected.number), \(expected.updateCount)"
    )
    let all = expected.bytes
    let wanted = range.map { $0.clamped(to: 0..<Int64(all.count)) } ?? 0..<Int64(all.count)
    let right = all[Int(wanted.lowerBound)..<Int(wanted.upperBound)]
    var read = Data()
    do {
      while let chunk = try await entry.body.source.next() { read.append(chunk) }
    } catch {
      try require(error.code == .damagedEntry, "\(Keys.key(key)): \(error)")
      try require(right.starts(with: read), "\(Keys.key(key)): wrong bytes before the error")
      return false
    }
    try require(read == right, "\(Keys.key(key)): wrong bytes")
    return true
  }

  /// Stores a missing entry again and reads it.
  func heal(_ key: Int) async throws {
    if values[key] != nil {
      // The entry usually keeps its damage, so that damages accumulate.
      guard Int.random(in: 0..<3, using: &generator) == 0 else { return }
    }
    try await store(key)
    let before = cache.counters
    guard let entry = try await cache.entry(for: Keys.key(key), range: nil) else {
      throw FailedCheck("\(Keys.key(key)) was stored again, but is missing")
    }
    try require(try await isWhole(entry, key, nil), "\(Keys.key(key)) was stored again, but is damaged")
    try require(cache.counters.hits == before.hits + 1, "a hit was not counted")
    tally("stored again")
  }

  /// Checks that an untouched entry exists, whatever happened to others.
  func bystander() async throws {
    let key = Int.random(in: 0..<Self.keys, using: &generator)
    guard touched[key] == nil, let value = values[key] else { return }
    guard let entry = try await cache.entry(for: Keys.key(key), range: nil) else {
      throw FailedCheck("\(Keys.key(key)), value \(value.number), is missing, but was not damaged")
    }
    try require(try await isWhole(entry, key, nil), "\(Keys.key(key)) is damaged, but was not touched")
  }

  /// Checks at the end that untouched entries are intact and all others correct.
  private func whole() async throws {
    for key in 0..<Self.keys {
      guard let entry = try await cache.entry(for: Keys.key(key), range: nil) else {
        try require(touched[key] != nil, "\(Keys.key(key)) is missing, but was not damaged")
        continue
      }
      _ = try await isWhole(entry, key, nil)
    }
    await cache.close()
  }
}
