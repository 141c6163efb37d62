internal import CacheCore

extension MemoryTier {
  /// Removes the responses that a purge selects, or marks them stale, together with the values that were made from them.
  ///
  /// - Returns: The keys of the selected responses.
  /// - Throws: An error if the store has to list its keys and cannot.
  func purge(_ purge: Purge, at now: Timestamp) throws(CacheError) -> Set<CacheKey> {
    guard let resource = purge.resource else { return self.purge(listed: try store.keys(), purge, now) }
    return self.purge(resource, purge, now)
  }

  private func purge(listed keys: [CacheKey], _ purge: Purge, _ now: Timestamp) -> Set<CacheKey> {
    var met: Set<CacheKey> = []
    for key in keys where Self.isIndex(key) && purge.mayMeet(key.resource) {
      met.formUnion(self.purge(key.resource, purge, now))
    }
    guard purge.mode == .hard, !met.isEmpty else { return met }
    for key in keys where !key.transform.isEmpty && met.contains(key.with(transform: "")) && !Self.isIndex(key) {
      store.remove(key, ifRevision: nil)
    }
    return met
  }

  private func purge(_ resource: String, _ purge: Purge, _ now: Timestamp) -> Set<CacheKey> {
    var met: [CacheKey: Revision] = [:]
    _ = change(resource) { index in
      index.elements = index.elements.compactMap { element in
        let key = CacheKey(resource: resource, variant: element.variant)
        guard purge.meets(key, element.metadata) else { return element }
        met[key] = element.metadata.revision
        guard purge.mode == .soft else { return nil }
        return element.markedStale(at: now)
      }
      return !met.isEmpty
    }
    if purge.mode == .hard { for (key, revision) in met { store.remove(key, ifRevision: revision) } }
    return Set(met.keys)
  }
}
