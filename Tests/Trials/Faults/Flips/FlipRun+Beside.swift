import CacheCore
import CacheTesting
import DiskStore
import Foundation

/// Damage to the files beside the entries.
extension FlipRun {
  /// Damages the index while the folder is closed. The index is a hint, so the files must count.
  func damageIndex() async throws {
    await cache.close()
    let index = root + "/index"
    if access(index, F_OK) == 0 { try damageBeside(index) }
    done += 1
    tally("index")
    try await reopen()
  }

  /// Damages the counters. They only show whether something has changed, so damage costs only speed.
  func damageGeneration() async throws {
    let generation = root + "/generation"
    if Bool.random(using: &generator) {
      let damage = [Damage.flip, .cut, .emptied].randomElement(using: &generator) ?? .flip
      try damage.apply(to: generation, other: "", &generator)
      try await sample()
      await cache.close()
    } else {
      await cache.close()
      try damageBeside(generation)
    }
    done += 1
    tally("generation")
    try await reopen()
    guard Bool.random(using: &generator) else { return }
    // Otherwise the counters would stay unequal for the rest of the run, and the index would not be tested.
    await cache.close()
    _ = unlink(generation)
    try await reopen()
  }

  /// Damages the key while the folder is closed. Without its key, no name can be computed, so the folder must start over.
  func damageFolderKey() async throws {
    await cache.close()
    let before = try? Data(contentsOf: URL(filePath: root + "/folder.key"))
    while try Data(contentsOf: URL(filePath: root + "/folder.key")) == before { try damageBeside(root + "/folder.key") }
    done += 1
    tally("folder.key")
    cache = try Self.opened(path)
    for _ in 0..<5 {
      let key = Keys.key(Int.random(in: 0..<Self.keys, using: &generator))
      try require(
        try await cache.entry(for: key, range: nil) == nil, "\(key) was found without the key that its name was derived from")
    }
    try require(try await cache.entryCount == 0, "the folder has not started over")
    (values, touched) = ([:], [:])
    try await fill()
    try await sample()
  }

  private func damageBeside(_ file: String) throws {
    let damage = Damage.random(&generator)
    let other = paths.values.min() ?? ""
    try damage.apply(to: file, other: other, &generator)
  }

  private func reopen() async throws {
    cache = try Self.opened(path)
    try await sample()
    let count = try await cache.entryCount
    try require(count == values.count, "\(count) entries are counted, but \(values.count) exist")
    try await sample()
  }

  /// Looks up some entries that exist and some that do not.
  private func sample() async throws {
    for _ in 0..<8 {
      try await bystander()
      let absent = CacheKey(resource: "https://faults.example/absent/\(Int.random(in: 0..<1_000, using: &generator))")
      try require(try await cache.entry(for: absent, range: nil) == nil, "an entry that was never stored was found")
    }
  }
}
