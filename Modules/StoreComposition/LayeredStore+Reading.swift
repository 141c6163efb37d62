public import CacheCore

extension LayeredStore {
  /// The layers are asked until one answers, and, where its answers carry `Vary`, the others too: one layer may have lost a
  /// variant that another has. What two of them have is the upper one's.
  public func variants(of resource: String) async throws(CacheError) -> [StoredEntry] {
    var found: [CacheKey: StoredEntry] = [:]
    var snapshot: CopyBarrier.Watch?
    for (index, layer) in layers.enumerated() {
      if index > 0, snapshot == nil { snapshot = barrier.snapshot(resource) }
      for entry in try await layer.variants(of: resource) where found[entry.key] == nil {
        found[entry.key] = entry
        if let snapshot { promote(entry, from: index, snapshot) }
      }
      if !found.isEmpty, found.keys.allSatisfy(\.variant.isEmpty) { break }
    }
    return Array(found.values)
  }

  /// All layers are asked. What two of them have is listed as the upper one has it.
  public func transforms(of resource: String) async throws(CacheError) -> [ListedEntry] {
    var found: [CacheKey: ListedEntry] = [:]
    for layer in layers {
      for entry in try await layer.transforms(of: resource) where found[entry.key] == nil { found[entry.key] = entry }
    }
    return Array(found.values)
  }

  public func entry(for key: CacheKey, range: Range<Int64>?) async throws(CacheError) -> StoredEntry? {
    var snapshot: CopyBarrier.Watch?
    for (index, layer) in layers.enumerated() {
      if index > 0, snapshot == nil { snapshot = barrier.snapshot(key.resource) }
      guard let entry = try await layer.entry(for: key, range: range) else { continue }
      if let snapshot { promote(entry, from: index, snapshot) }
      return entry
    }
    return nil
  }

  /// The sum over the layers. An entry that two layers have counts twice. `nil` if a layer does not count its entries.
  public func usage() async throws(CacheError) -> StoreUsage? {
    var sum = StoreUsage(entries: 0, bytes: 0, limit: 0)
    for layer in layers {
      guard let usage = try await layer.store.usage() else { return nil }
      sum.entries += usage.entries
      sum.bytes += usage.bytes
      if let limit = usage.limit, let known = sum.limit { sum.limit = known + limit } else { sum.limit = nil }
    }
    return sum
  }

  /// Each layer is asked once, for what those above it don't have.
  public func values(for keys: [CacheKey]) async throws(CacheError) -> [CacheKey: StoredEntry] {
    var missing = Set(keys)
    var found: [CacheKey: StoredEntry] = [:]
    var watches: [CacheKey: CopyBarrier.Watch] = [:]
    for (index, layer) in layers.enumerated() where !missing.isEmpty {
      if index == 1 { for key in missing { watches[key] = barrier.snapshot(key.resource) } }
      for (key, entry) in try await layer.values(for: Array(missing)) where missing.remove(key) != nil {
        found[key] = entry
        if let snapshot = watches[key] { promote(entry, from: index, snapshot) }
      }
    }
    return found
  }

  /// What two layers have is listed as the upper one has it.
  ///
  /// Unlike a look, it fails where a layer does: a purge that passes over a layer would leave there what it is to remove. With
  /// several layers the keys of all but the last are held in memory meanwhile.
  public func entries(
    where isWanted: @escaping @Sendable (CacheKey, StoredMetadata) -> Bool
  ) async throws(CacheError) -> [ListedEntry] {
    let seen = Lock<Set<CacheKey>>([])
    var listed: [ListedEntry] = []
    for (index, layer) in layers.enumerated() {
      let isLast = index == layers.count - 1
      let here = Lock<Set<CacheKey>>([])
      listed += try await layer.store.entries { key, metadata in
        guard !layer.isHidden(key), !seen.withLock({ $0.contains(key) }) else { return false }
        if !isLast { here.withLock { _ = $0.insert(key) } }
        return isWanted(key, metadata)
      }
      let keys = here.withLock { $0 }
      seen.withLock { $0.formUnion(keys) }
    }
    return listed
  }
}
