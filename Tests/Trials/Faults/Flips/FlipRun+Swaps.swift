import CacheCore
import CacheTesting
import DiskStore
import Foundation

/// Swapped files, and damage to many files at once.
extension FlipRun {
  /// Swaps the files of two entries. Both are intact, but neither belongs to its name.
  func swap(_ key: Int) async throws {
    let other =
      Bool.random(using: &generator)
      ? key ^ Int.random(in: 1...3, using: &generator) : Int.random(in: 0..<Self.keys, using: &generator)
    guard other != key, other < Self.keys, touched[key] == nil, touched[other] == nil else { return }
    let (one, two, aside) = (try file(key), try file(other), path + "/aside")
    guard rename(one, aside) == 0, rename(two, one) == 0, rename(aside, two) == 0 else {
      throw FailedCheck("cannot swap files")
    }
    done += 1
    tally("swapped")
    for key in [key, other] {
      let before = cache.counters
      try require(
        try await cache.entry(for: Keys.key(key), range: nil) == nil, "\(Keys.key(key)): another key's entry was served")
      try require(cache.counters.misses == before.misses + 1, "a miss was not counted")
      tally("misses")
    }
    for (healed, left) in [(key, other), (other, key)] {
      try await store(healed)
      tally("stored again")
      // A misplaced file belongs to no key, also when the variants are listed.
      for resource in Set([Keys.key(healed).resource, Keys.key(left).resource]) {
        for entry in try await cache.variants(of: resource) {
          let number = (0..<Self.keys).first { Keys.key($0) == entry.key }
          guard let number, touched[number] == nil else { continue }
          try require(try await isWhole(entry, number, nil), "\(entry.key) is damaged, but was not touched")
        }
        try await replaceRemoved(of: resource)
      }
      guard let entry = try await cache.entry(for: Keys.key(healed), range: nil) else {
        throw FailedCheck("\(Keys.key(healed)) is missing after a store")
      }
      try require(try await isWhole(entry, healed, nil), "\(Keys.key(healed)) is damaged after a store")
    }
  }

  /// Stores again the variants that a listing found damaged and removed.
  private func replaceRemoved(of resource: String) async throws {
    let removed = try touched.keys.sorted().filter { try Keys.key($0).resource == resource && access(file($0), F_OK) != 0 }
    for key in removed {
      tally("misses")
      try await store(key)
      tally("stored again")
    }
  }

  /// Damages many entries and checks that `verify` and reads agree on each.
  func damageMany() async throws {
    var victims: Set<Int> = []
    for _ in 0..<20 {
      let key = Int.random(in: 0..<Self.keys, using: &generator)
      guard touched[key] == nil else { continue }
      try damage(key)
      victims.insert(key)
    }
    // Entries with earlier damage are checked too.
    victims.formUnion(touched.keys)
    let report = try await cache.verify()
    try require(report.unreadable.isEmpty, "\(report.unreadable)")
    let damaged = Set(report.damaged.keys)
    for key in 0..<Self.keys where !victims.contains(key) {
      try require(!damaged.contains(try file(key)), "verify reports damage of an entry that was not touched")
    }
    let removal = try await cache.verify(removingDamaged: true)
    try require(removal.removed == damaged.count, "\(removal.removed) of \(damaged.count) damaged files were removed")
    tally("found by verify", damaged.count)
    for key in victims.sorted() {
      let entry = try await cache.entry(for: Keys.key(key), range: nil)
      if damaged.contains(try file(key)) {
        try require(entry == nil, "\(Keys.key(key)) was damaged and removed, but is served")
        values[key] = nil
        try await store(key)
      } else {
        guard let entry else { throw FailedCheck("\(Keys.key(key)) is good, but missing") }
        try require(try await isWhole(entry, key, nil), "\(Keys.key(key)) was reported good, but is damaged")
      }
    }
  }
}
