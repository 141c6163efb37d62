public import CacheCore

extension LayeredStore {
  /// Replaces the metadata in every layer that has the entry in this revision. Returns `false` if lookups find another revision
  /// or no layer accepted the update.
  ///
  /// If the update succeeds in one layer, a layer that failed loses the entry. An entry that exists only in a read-only layer is
  /// copied into the layers above it, up to ``Configuration/promotionLimit``. A read-only entry is hidden if it would be
  /// considered fresher than the new metadata state.
  public func updateMetadata(of key: CacheKey, to metadata: StoredMetadata, ifRevision revision: Revision)
    async throws(CacheError) -> Bool
  {
    // If the entry is in a read-only layer, a copy in progress may be the only one that can be updated.
    await copyTable.settled(key.resource)
    await barrier.beginChange([key.resource])
    defer { barrier.endChange([key.resource]) }
    guard try await shown(key)?.revision == revision else { return false }
    var first: Int?
    var readOnly: [Int] = []
    var failures: [(index: Int, error: CacheError)] = []
    for (index, layer) in layers.enumerated() where !layer.isHidden(key) {
      do throws(CacheError) {
        if try await layer.store.updateMetadata(of: key, to: metadata, ifRevision: revision) { first = first ?? index }
      } catch {
        if error.isCancellation { throw error }
        layer.note(error)
        if await layer.isPermanent(error) { readOnly.append(index) } else { failures.append((index, error)) }
      }
    }
    for index in readOnly {
      guard let kept = (try? await layers[index].store.entry(for: key, range: 0..<0))?.metadata, kept.revision == revision else {
        continue
      }
      if first == nil {
        let copied = await copyUp(key, metadata, revision, from: index)
        first = copied.first
        failures.removeAll { copied.contains($0.index) }
      }
      if kept.freshness.claimsMore(than: metadata.freshness) || index < first ?? 0 { layers[index].hide(key) }
    }
    guard first != nil else {
      if let failure = failures.first { throw failure.error }
      return false
    }
    for failure in failures { _ = await layers[failure.index].remove(key) }
    return true
  }

  /// Stores a read-only layer's entry with new metadata in the layers above. It runs within a change, so no other change can
  /// overtake it.
  ///
  /// - Returns: The layers that accepted the entry.
  private func copyUp(_ key: CacheKey, _ metadata: StoredMetadata, _ revision: Revision, from index: Int) async -> [Int] {
    var metadata = metadata
    metadata.revision = revision
    var copied: [Int] = []
    for above in 0..<index where !layers[above].hidesAll {
      guard let entry = (try? await layers[index].store.entry(for: key, range: nil)) ?? nil,
        let length = entry.metadata.bodyLength, length <= configuration.promotionLimit,
        entry.metadata.revision == revision
      else { break }
      metadata.bodyLength = length
      do throws(CacheError) {
        let writer = try await layers[above].makeWriter(for: key, metadata: metadata)
        defer { writer.abort() }
        while let chunk = try await entry.body.source.next() { try await writer.write(chunk) }
        _ = try await writer.commit(trailers: entry.metadata.trailers)
        layers[above].show(key)
        copied.append(above)
      } catch {
        layers[above].note(error)
      }
    }
    return copied
  }
}

extension Freshness {
  /// Whether these facts allow a use without revalidation where the others do not.
  fileprivate func claimsMore(than other: Freshness) -> Bool {
    freshUntil > other.freshUntil || (other.requiresRevalidation && !requiresRevalidation)
  }
}
