public import CacheCore

extension LayeredStore {
  /// Returns the variants from the first layer that has any. If they have `Vary`, the other layers are read too, because one
  /// layer may have lost a variant that another has. A variant in two layers is returned from the upper one.
  ///
  /// - Throws: The first error of a layer, if no layer has a variant.
  public func variants(of resource: String) async throws(CacheError) -> [StoredEntry] {
    var found: [CacheKey: StoredEntry] = [:]
    var snapshot: CopyBarrier.Watch?
    var failure: CacheError?
    for (index, layer) in layers.enumerated() {
      if index > 0, snapshot == nil { snapshot = barrier.snapshot(resource) }
      for entry in try await layer.variants(of: resource, &failure) where found[entry.key] == nil {
        found[entry.key] = entry
        if let snapshot { promote(entry, from: index, snapshot) }
      }
      if !found.isEmpty, found.keys.allSatisfy(\.variant.isEmpty) { break }
    }
    if found.isEmpty, let failure { throw failure }
    return Array(found.values)
  }

  /// Returns the latest response of each variant in all layers, by `StoredMetadata.responseTime`. If the times are equal, the
  /// response of the lowest layer is returned. In the layers above, an older response of the same revision gets the new metadata,
  /// and an older one of another revision is removed.
  ///
  /// - Throws: The first error of a layer, if no layer has a variant.
  public func latestVariants(of resource: String) async throws(CacheError) -> [StoredEntry] {
    var latest: [CacheKey: (entry: StoredEntry, index: Int)] = [:]
    let snapshot = barrier.snapshot(resource)
    var failure: CacheError?
    for (index, layer) in layers.enumerated() {
      for entry in try await layer.variants(of: resource, &failure) {
        let known = latest[entry.key]?.entry.metadata
        if known?.isOutdated(by: entry.metadata) ?? true { latest[entry.key] = (entry, index) }
      }
    }
    if latest.isEmpty, let failure { throw failure }
    for (entry, index) in latest.values where index > 0 {
      if await replaceOlder(entry, above: index, snapshot) { promote(entry, from: index, snapshot) }
    }
    return latest.values.map(\.entry)
  }

  /// Updates or removes the older responses in the layers above the one with a later response.
  ///
  /// - Returns: Whether a layer above lacks the later response.
  private func replaceOlder(_ entry: StoredEntry, above index: Int, _ snapshot: CopyBarrier.Watch) async -> Bool {
    // A change since the lookup, such as a purge, is later than the entry that was found.
    guard barrier.beginCommit(snapshot) else { return false }
    defer { barrier.endCommit(snapshot) }
    let (key, metadata) = (entry.key, entry.metadata)
    var isMissing = false
    for layer in layers[..<index] where !layer.isHidden(key) {
      let known = (try? await layer.store.entry(for: key, range: 0..<0))?.metadata
      guard let known else {
        isMissing = true
        continue
      }
      guard known.isOutdated(by: metadata) else { continue }
      let isUpdated = try? await layer.store.updateMetadata(of: key, to: metadata, ifRevision: metadata.revision)
      guard isUpdated != true else { continue }
      isMissing = true
      _ = await layer.remove(key)
    }
    return isMissing
  }

  /// Lists the transforms in all layers. A transform in two layers is listed from the upper one.
  ///
  /// - Throws: The first error of a layer, if no layer has a transform.
  public func transforms(of resource: String) async throws(CacheError) -> [ListedEntry] {
    var found: [CacheKey: ListedEntry] = [:]
    var failure: CacheError?
    for layer in layers {
      for entry in try await layer.transforms(of: resource, &failure) where found[entry.key] == nil { found[entry.key] = entry }
    }
    if found.isEmpty, let failure { throw failure }
    return Array(found.values)
  }

  /// Returns the entry from the first layer that has it.
  ///
  /// - Throws: The first error of a layer, if no layer has the entry.
  public func entry(for key: CacheKey, range: Range<Int64>?) async throws(CacheError) -> StoredEntry? {
    var snapshot: CopyBarrier.Watch?
    var failure: CacheError?
    for (index, layer) in layers.enumerated() {
      if index > 0, snapshot == nil { snapshot = barrier.snapshot(key.resource) }
      guard let entry = try await layer.entry(for: key, range: range, &failure) else { continue }
      if let snapshot { promote(entry, from: index, snapshot) }
      return entry
    }
    if let failure { throw failure }
    return nil
  }

  /// Returns the sum over the layers, in which an entry in two layers counts twice, or `nil` if a layer does not count its
  /// entries.
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

  /// Looks up each layer once, for the keys that the layers above do not have.
  ///
  /// If a layer fails, a missing key may still be stored in it.
  ///
  /// - Throws: The first error of a layer, if no layer has an entry of these keys.
  public func values(for keys: [CacheKey]) async throws(CacheError) -> [CacheKey: StoredEntry] {
    var missing = Set(keys)
    var found: [CacheKey: StoredEntry] = [:]
    var watches: [CacheKey: CopyBarrier.Watch] = [:]
    var failure: CacheError?
    for (index, layer) in layers.enumerated() where !missing.isEmpty {
      if index == 1 { for key in missing { watches[key] = barrier.snapshot(key.resource) } }
      for (key, entry) in try await layer.values(for: Array(missing), &failure) where missing.remove(key) != nil {
        found[key] = entry
        if let snapshot = watches[key] { promote(entry, from: index, snapshot) }
      }
    }
    if found.isEmpty, let failure { throw failure }
    return found
  }

  /// Lists the entries of a resource in all layers. An entry in two layers is listed from the upper one.
  ///
  /// Unlike a lookup, a list fails if a layer fails, because a purge that skipped a layer would leave entries behind. It also has
  /// the entries that lookups do not find because an upper layer has another response. Other machines may find them.
  public func entries(of resource: String) async throws(CacheError) -> [ListedEntry] {
    try await list { layer throws(CacheError) in
      try await layer.store.entries(of: resource).filter { layer.lists($0.key) }
    }
  }

  /// Lists the entries of all layers, like ``entries(of:)``.
  public func entries(
    where isWanted: @escaping @Sendable (CacheKey, StoredMetadata) -> Bool
  ) async throws(CacheError) -> [ListedEntry] {
    try await list { layer throws(CacheError) in
      try await layer.store.entries { key, metadata in layer.lists(key) && isWanted(key, metadata) }
    }
  }

  /// Returns the keys of the tagged entries of all layers, like ``entries(of:)``.
  public func keys(tagged tag: String) async throws(CacheError) -> Set<CacheKey> {
    let keys = try await inEachLayer { layer throws(CacheError) in try await layer.store.keys(tagged: tag).filter(layer.lists) }
    return keys.reduce(into: []) { $0.formUnion($1) }
  }

  private func list(
    _ entries: @escaping @Sendable (Layer) async throws(CacheError) -> [ListedEntry]
  ) async throws(CacheError) -> [ListedEntry] {
    let lists = try await inEachLayer(entries)
    guard lists.count > 1 else { return lists[0] }
    var found: [CacheKey: ListedEntry] = [:]
    for entry in lists.joined() where found[entry.key] == nil { found[entry.key] = entry }
    return Array(found.values)
  }

  /// Calls `work` for all layers at the same time, and returns the results in the order of the layers.
  private func inEachLayer<Value: Sendable>(
    _ work: @escaping @Sendable (Layer) async throws(CacheError) -> Value
  ) async throws(CacheError) -> [Value] {
    if layers.count == 1 { return [try await work(layers[0])] }
    let results = await withTaskGroup(of: (index: Int, result: Result<Value, CacheError>).self) { group in
      for (index, layer) in layers.enumerated() {
        group.addTask {
          do throws(CacheError) {
            return (index, .success(try await work(layer)))
          } catch {
            return (index, .failure(error))
          }
        }
      }
      return await group.reduce(into: []) { $0.append($1) }
    }
    var values: [Value] = []
    for (_, result) in results.sorted(by: { $0.index < $1.index }) { values.append(try result.get()) }
    return values
  }
}

extension StoredMetadata {
  /// Whether the metadata of a lower layer replaces this metadata.
  fileprivate func isOutdated(by lower: StoredMetadata) -> Bool {
    responseTime < lower.responseTime || (responseTime == lower.responseTime && freshness != lower.freshness)
  }
}
