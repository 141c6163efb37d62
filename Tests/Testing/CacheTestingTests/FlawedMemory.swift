import CacheCore
import CacheTesting

/// A dictionary as a memory store, without a flaw or with one that the contract must find.
final class FlawedMemory: MemoryStoring {
  enum Flaw: String, CaseIterable {
    case keepsTheOlder, ignoresRevisions, changesAnyway, keepsEverything, listsRemoved, evictsTheNewest
  }

  let id = ComponentID.unique(FlawedMemory.self)
  private let flaw: Flaw?
  private let state = Lock((entries: [CacheKey: MemoryEntry](), keys: Set<CacheKey>()))

  init(_ flaw: Flaw?) { self.flaw = flaw }

  private static func isAlive(_ entry: MemoryEntry) -> Bool {
    SystemClock().now < (entry.expiration ?? .never).deadline(from: SystemClock().now)
  }

  func entry(for key: CacheKey) -> MemoryEntry? { state.withLock { $0.entries[key] }.flatMap { Self.isAlive($0) ? $0 : nil } }

  func insert(_ entry: MemoryEntry, for key: CacheKey) -> Bool {
    state.withLock { state in
      if flaw == .keepsTheOlder, state.entries[key] != nil { return true }
      if flaw == .evictsTheNewest, state.entries.count > 30 { return true }
      state.entries[key] = entry
      state.keys.insert(key)
      return true
    }
  }

  func update(_ key: CacheKey, _ change: (MemoryEntry?) -> MemoryUpdate) -> Bool {
    switch change(entry(for: key)) {
    case .keep where flaw != .changesAnyway: return false
    case .replace(let entry): return insert(entry, for: key)
    case .keep, .remove:
      remove(key, ifRevision: nil)
      return true
    }
  }

  func remove(_ key: CacheKey, ifRevision revision: Revision?) {
    state.withLock { state in
      if flaw != .ignoresRevisions, let revision, state.entries[key]?.revision != revision { return }
      state.entries[key] = nil
      if flaw != .listsRemoved { state.keys.remove(key) }
    }
  }

  func removeAll() { if flaw != .keepsEverything { state.withLock { $0 = ([:], []) } } }

  func keys() -> [CacheKey] {
    state.withLock { state in
      state.keys.filter { key in state.entries[key].map { Self.isAlive($0) } ?? (flaw == .listsRemoved) }
    }
  }
}
