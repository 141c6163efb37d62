internal import CacheCore

/// What has left, held until the lock is open: a value's `deinit` is a user's code. One, which is the rule, needs no array.
struct EvictedEntries {
  private var one: MemoryEntry?
  private var more: [MemoryEntry] = []

  mutating func add(_ entry: MemoryEntry?) {
    guard let entry else { return }
    if one == nil { one = entry } else { more.append(entry) }
  }
}
