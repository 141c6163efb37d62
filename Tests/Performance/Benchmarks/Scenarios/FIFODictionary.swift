import CacheCore

/// The peer of the memory store: a dictionary under one mutex, which removes its oldest entry when it is full.
final class FIFODictionary: Sendable {
  private struct State {
    var entries: [String: MemoryEntry] = [:]
    // A ring buffer. When it is full, the oldest key is at `first`.
    var order: [String] = []
    var first = 0
  }

  private let state = Lock(State())
  private let capacity: Int

  init(capacity: Int) { self.capacity = capacity }

  func entry(for key: String) -> MemoryEntry? { state.withLock { $0.entries[key] } }

  func insert(_ entry: MemoryEntry, for key: String) {
    let capacity = capacity
    // As in `MemoryCache`, the removed entry is released outside the lock.
    let left: MemoryEntry? = state.withLock { state in
      if let replaced = state.entries.updateValue(entry, forKey: key) { return replaced }
      guard state.order.count == capacity else {
        state.order.append(key)
        return nil
      }
      let oldest = state.entries.removeValue(forKey: state.order[state.first])
      state.order[state.first] = key
      state.first = state.first + 1 == capacity ? 0 : state.first + 1
      return oldest
    }
    withExtendedLifetime(left) {}
  }
}
