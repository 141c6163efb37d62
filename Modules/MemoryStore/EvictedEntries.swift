internal import CacheCore

/// The entries that have left a store. They are held until the lock is released, because the `deinit` of a value is user code. A
/// single entry, the usual case, needs no array.
struct EvictedEntries {
  private var one: MemoryEntry?
  private var more: [MemoryEntry] = []

  mutating func add(_ entry: MemoryEntry?) {
    guard let entry else { return }
    if one == nil { one = entry } else { more.append(entry) }
  }
}
