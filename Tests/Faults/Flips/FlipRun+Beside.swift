import CacheCore
import CacheTesting
import DiskStore
import Foundation

/// Damage to what lies beside the entries, while no cache has the folder open.
extension FlipRun {
  /// The index is a hint: whatever it says, the files count.
  func damageIndex() async throws {
    await cache.close()
    let index = root + "/index"
    if access(index, F_OK) == 0 { try damageBeside(index) }
    done += 1
    tally("index")
    try await reopen()
  }

  /// The counters only tell whether something was changed: damaged ones cost speed.
  func damageGeneration() async throws {
    let generation = root + "/generation"
    if Bool.random(using: &generator) {
      // While they are mapped: a cut would end the process, as the page says.
      try Damage.flip.apply(to: generation, other: "", &generator)
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
    // Else they stay unequal for the rest of the run, and nothing more is learnt of the index.
    await cache.close()
    _ = unlink(generation)
    try await reopen()
  }

  /// Without its key no name of the folder can be computed: it starts anew.
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
        try await cache.entry(for: key, range: nil) == nil, "\(key) was found without the key that its name was made with")
    }
    try require(try await cache.entryCount == 0, "the folder has not started anew")
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
    try require(count == values.count, "\(count) entries are counted, and \(values.count) are there")
    try await sample()
  }

  /// Some that are there, and some that are not.
  private func sample() async throws {
    for _ in 0..<8 {
      try await bystander()
      let absent = CacheKey(resource: "https://faults.example/absent/\(Int.random(in: 0..<1_000, using: &generator))")
      try require(try await cache.entry(for: absent, range: nil) == nil, "what nobody has stored was found")
    }
  }
}
