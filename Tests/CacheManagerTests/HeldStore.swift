import CacheCore
import CacheManager
import CacheTesting
import Foundation

/// A durable store whose calls can be held at the moment that matters.
final class HeldStore: CacheStore {
  /// What has been read is handed over late; what is to be removed is removed late.
  enum Call: Hashable, Sendable { case look, open, removal }

  let id = ComponentID.unique(HeldStore.self)
  let base: VolatileStore
  private let gates = Lock<[Call: Gate]>([:])

  init(clock: any CacheClock) { base = VolatileStore(clock: clock) }

  /// Holds the next call of this kind; those after it go through.
  func hold(_ call: Call) -> Gate {
    let gate = Gate()
    gates.withLock { $0[call] = gate }
    return gate
  }

  private func pass(_ call: Call) async { await gates.withLock { $0.removeValue(forKey: call) }?.pass() }

  func variants(of resource: String) async throws(CacheError) -> [StoredEntry] {
    let variants = try await base.variants(of: resource)
    await pass(.look)
    return variants
  }

  func open(_ key: CacheKey, range: Range<Int64>?) async throws(CacheError) -> StoredEntry? {
    let entry = try await base.open(key, range: range)
    await pass(.open)
    return entry
  }

  func begin(_ key: CacheKey, _ metadata: StoredMetadata) async throws(CacheError) -> any EntryWriter {
    try await base.begin(key, metadata)
  }

  func refresh(_ key: CacheKey, _ metadata: StoredMetadata, ifRevision: Revision) async throws(CacheError) -> Bool {
    try await base.refresh(key, metadata, ifRevision: ifRevision)
  }

  func remove(_ key: CacheKey, ifRevision: Revision?) async throws(CacheError) {
    await pass(.removal)
    try await base.remove(key, ifRevision: ifRevision)
  }

  func removeAll() async throws(CacheError) {
    await pass(.removal)
    try await base.removeAll()
  }

  func entries(where isWanted: @escaping @Sendable (CacheKey, StoredMetadata) -> Bool) async throws(CacheError) -> [ListedEntry] {
    try await base.entries(where: isWanted)
  }
}

extension House {
  /// A house whose disk can be held.
  static func held() throws -> (house: House, store: HeldStore) {
    let kept = Lock<HeldStore?>(nil)
    let house = try House {
      let store = HeldStore(clock: $0.clock)
      kept.withLock { $0 = store }
      $0.store = store
    }
    guard let store = kept.withLock({ $0 }) else { throw ContractViolation("the house has no store") }
    return (house, store)
  }
}
