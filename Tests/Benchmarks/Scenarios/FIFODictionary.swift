import CacheCore

/// What a memory cache is measured against: a dictionary under one mutex, whose oldest entry leaves when it is full.
final class FIFODictionary: Sendable {
  private struct State {
    var entries: [String: MemoryEntry] = [:]
    // A ring: the oldest is at `first` once it is full.
    var order: [String] = []
    var first = 0
  }

  private let state = Lock(State())
  private let capacity: Int

  init(capacity: Int) { self.capacity = capacity }

  func entry(for key: String) -> MemoryEntry? { state.withLock { $0.entries[key] } }

  func insert(_ entry: MemoryEntry, for key: String) {
    let capacity = capacity
    // What leaves is let go of outside the lock here too.
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
