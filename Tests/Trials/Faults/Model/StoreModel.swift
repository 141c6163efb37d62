import CacheCore
import CacheTesting
import Foundation

/// Random operations on a store and a dictionary, which must always give the same results.
struct StoreModel<Store: Subject> {
  private static var keys: Int { 240 }

  private var subject: Store
  private let clock: ManualClock
  /// Whether the store evicts entries. An entry may then be missing, which is counted.
  private let evicts: Bool
  private var generator: SplitMix
  private var values: [Int: Value] = [:]
  private var number: UInt64 = 0
  private var evicted = 0
  private(set) var tallies: [String: Int] = [:]

  init(_ subject: Store, clock: ManualClock, seed: UInt64, evicts: Bool) {
    (self.subject, self.clock, self.evicts) = (subject, clock, evicts)
    generator = SplitMix(state: seed)
  }

  mutating func run(_ operations: Int) async throws -> [String] {
    for step in 0..<operations {
      do {
        try await self.step()
        if step % 5_000 == 4_999 { try await checkpoint() }
      } catch {
        throw FailedCheck("\(subject.name), operation \(step): \(error)")
      }
    }
    try await checkpoint()
    try await subject.close()
    let kinds = tallies.sorted { $0.key < $1.key }.map { "\($0.key) \(grouped($0.value))" }.joined(separator: ", ")
    return [
      "\(subject.name): \(grouped(operations)) operations: \(kinds)"
    ]
  }

  private mutating func tally(_ what: String, _ by: Int = 1) { tallies[what, default: 0] += by }

  private mutating func chance(_ sides: Int) -> Int { Int.random(in: 0..<sides, using: &generator) }

  private mutating func step() async throws {
    let key = chance(Self.keys)
    let store = subject.stores[chance(subject.stores.count)]
    switch chance(10_000) {
    case 0..<2: try await removeAll(store)
    case 2..<6:
      tally("reopened")
      try await subject.reopen()
    case 6..<9: try await trim()
    case 9..<400: clock.advance(by: .milliseconds(chance(2_000)))
    case 400..<3_000: try await self.store(key, store)
    case 3_000..<4_000: try await refresh(key, store)
    case 4_000..<5_000: try await remove(key, store)
    case 5_000..<5_600: try await variants(key, store)
    case 5_600..<6_600: try await read(key, store, isPart: true)
    default: try await read(key, store, isPart: false)
    }
  }

  /// Returns the value that the model expects now.
  private func expected(_ key: Int) -> Value? {
    guard let value = values[key], clock.now < value.deadline else { return nil }
    return value
  }

  /// Compares the store's result for a key with the model.
  private mutating func compare(_ found: Value?, _ key: Int) throws {
    let expected = expected(key)
    if found == nil, expected != nil, evicts {
      values[key] = nil
      evicted += 1
      return
    }
    try require(
      found == expected,
      "\(Keys.key(key)) is \(found.map { "\($0)" } ?? "missing"), not \(expected.map { "\($0)" } ?? "removed")")
  }

  // MARK: Operations

  private mutating func store(_ key: Int, _ store: any CacheStore) async throws {
    number += 1
    // The eviction of an expired entry would be counted but not noticed.
    let lifetime = !evicts && chance(4) == 0 ? chance(90) : nil
    let value = Value(number: number, length: Value.length(&generator), responseTime: clock.now, lifetime: lifetime)
    try await noteAbsence(key, store)
    guard chance(3) == 0 else {
      try await store.store(value.bytes, for: Keys.key(key), metadata: value.metadata)
      values[key] = value
      return tally("stored")
    }
    let writer = try await store.makeWriter(for: Keys.key(key), metadata: value.metadata)
    var rest = value.bytes
    while !rest.isEmpty {
      let chunk = rest.prefix(1 + chance(70_000))
      try await writer.write(Data(chunk))
      rest = rest.dropFirst(chunk.count)
    }
    if chance(5) == 0 {
      writer.abort()
      return tally("aborted")
    }
    _ = try await writer.commit(trailers: nil)
    values[key] = value
    tally("stored in chunks")
  }

  /// Reads an entry that is about to be replaced or removed, so that its eviction is counted.
  private mutating func noteAbsence(_ key: Int, _ store: any CacheStore) async throws {
    guard evicts, expected(key) != nil else { return }
    try await subject.settle()
    try await read(key, store, isPart: false)
  }

  private mutating func refresh(_ key: Int, _ store: any CacheStore) async throws {
    try await noteAbsence(key, store)
    let known = expected(key)
    var value = known ?? Value(number: 1, length: 1)
    value.updateCount += 1
    value.responseTime = clock.now
    let isRight = chance(4) > 0
    let revision = isRight ? value.revision : Revision(high: 0, low: 1)
    // Some stores update an expired entry, which is a miss until then.
    if known == nil, values[key] != nil { return }
    let isThere = try await store.updateMetadata(of: Keys.key(key), to: value.metadata, ifRevision: revision)
    try require(
      isThere == (known != nil && isRight), "\(Keys.key(key)) updated \(isThere), expected \(String(describing: known))")
    if isThere { values[key] = value }
    tally("updated")
  }

  private mutating func remove(_ key: Int, _ store: any CacheStore) async throws {
    try await noteAbsence(key, store)
    switch (chance(3), values[key]) {
    case (0, _):
      try await store.remove(Keys.key(key), ifRevision: Revision(high: 0, low: 1))
    case (1, let value?):
      try await store.remove(Keys.key(key), ifRevision: value.revision)
      values[key] = nil
    default:
      try await store.remove(Keys.key(key), ifRevision: nil)
      values[key] = nil
    }
    tally("removed")
  }

  private mutating func removeAll(_ store: any CacheStore) async throws {
    if evicts { try await checkpoint() }
    try await store.removeAll()
    values = [:]
    tally("removed all")
  }

  private mutating func read(_ key: Int, _ store: any CacheStore, isPart: Bool) async throws {
    let length = Int64(values[key]?.length ?? 10)
    let start = Int64(chance(Int(length) + 1))
    let range = isPart ? start..<start + Int64(chance(100_000)) : nil
    tally(isPart ? "parts read" : "read")
    guard let entry = try await store.entry(for: Keys.key(key), range: range) else { return try compare(nil, key) }
    guard let range else { return try compare(try await Value(of: entry, for: Keys.key(key)), key) }
    let value = try Value(checking: entry.metadata, for: Keys.key(key))
    let part = range.clamped(to: 0..<Int64(value.length))
    let body = try await entry.body.collect()
    try require(
      body == value.bytes[Int(part.lowerBound)..<Int(part.upperBound)], "\(Keys.key(key)): wrong bytes in \(range)")
    try compare(value, key)
  }

  private mutating func variants(_ key: Int, _ store: any CacheStore) async throws {
    let first = key / 4 * 4
    var found: [Int: Value] = [:]
    for entry in try await store.variants(of: Keys.key(key).resource) {
      guard let number = (first..<first + 3).first(where: { Keys.key($0) == entry.key }), found[number] == nil else {
        throw FailedCheck("\(entry.key) is listed as a variant of \(Keys.key(key).resource), or twice")
      }
      found[number] = try await Value(of: entry, for: entry.key)
    }
    for number in first..<first + 3 { try compare(found[number], number) }
    tally("variants listed")
  }

  private mutating func trim() async throws {
    try await checkpoint()
    let size = Int64(chance(4_000_000))
    guard let removed = try await subject.trim(to: size) else { return }
    let before = values.count
    try await takeList(subject.stores[0]) { _, _ in }
    try require(before - values.count == removed, "\(removed) entries were trimmed, but \(before - values.count) are missing")
    evicted += removed
    tally("trimmed", removed)
  }

  // MARK: Checkpoints

  /// Lists and counts all entries and compares them with the model.
  private mutating func checkpoint() async throws {
    try await subject.settle()
    try await subject.removeExpired()
    for (key, value) in values where value.deadline <= clock.now { values[key] = nil }
    for store in subject.stores {
      var missing: [Int] = []
      try await takeList(store) { key, _ in missing.append(key) }
      try require(evicts || missing.isEmpty, "\(missing.map(Keys.key)) are not listed")
      evicted += missing.count
    }
    if let count = try await subject.count() {
      try require(count == values.count, "\(count) entries are counted, but \(values.count) exist")
    }
    if evicts {
      try require(evicted == subject.evictions, "\(evicted) entries are missing, but \(subject.evictions) evictions were counted")
      tallies["evicted"] = evicted
    }
  }

  /// Compares a store's list with the model. Values that are not listed are removed from the model.
  private mutating func takeList(_ store: any CacheStore, _ missing: (Int, Value) -> Void) async throws {
    var listed: [CacheKey: Value] = [:]
    for entry in try await store.entries(where: { _, _ in true }) {
      try require(listed[entry.key] == nil, "\(entry.key) is listed twice")
      listed[entry.key] = try Value(checking: entry.metadata, for: entry.key)
    }
    for (key, value) in values {
      if let found = listed.removeValue(forKey: Keys.key(key)) {
        try require(found == value, "\(Keys.key(key)) is listed as \(found), but is \(value)")
      } else {
        missing(key, value)
        values[key] = nil
      }
    }
    try require(listed.isEmpty, "\(listed.keys) are listed, but were never stored")
  }
}

extension Value {
  /// The time from which the value is a miss.
  var deadline: Timestamp { lifetime.map { responseTime + .seconds($0) } ?? .distantFuture }
}
