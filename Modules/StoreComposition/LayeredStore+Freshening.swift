public import CacheCore

extension LayeredStore {
  /// Replaces the metadata in every layer that has the entry in that revision; false when what is shown is of another one, or no
  /// layer took them.
  ///
  /// A layer that fails loses the entry when another one has it freshened. What can only be read, and is not above as well, is
  /// copied into the layers above it, up to ``Configuration/promotionLimit``; where it would be taken for fresher than the new
  /// metadata say, it is hidden.
  public func updateMetadata(of key: CacheKey, to metadata: StoredMetadata, ifRevision revision: Revision)
    async throws(CacheError) -> Bool
  {
    // A copy on its way up is what a layer that can't be written to leaves to freshen.
    await copyTable.settled(key.resource)
    await barrier.beginChange(key.resource)
    defer { barrier.endChange(key.resource) }
    guard try await shown(key) == revision else { return false }
    var first: Int?
    var readOnly: [Int] = []
    var failures: [(index: Int, error: CacheError)] = []
    for (index, layer) in layers.enumerated() where !layer.isHidden(key) {
      do throws(CacheError) {
        if try await layer.store.updateMetadata(of: key, to: metadata, ifRevision: revision) { first = first ?? index }
      } catch {
        if error.isCancellation { throw error }
        layer.note(error)
        if error.code == .readOnly { readOnly.append(index) } else { failures.append((index, error)) }
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

  /// Stores an entry with new metadata in the layers above the one that has it and can't be written to. For a change: nothing can
  /// overtake it.
  ///
  /// - Returns: the layers that took it.
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
  /// Whether an answer with these would be used without asking where one with the others would not.
  fileprivate func claimsMore(than other: Freshness) -> Bool {
    freshUntil > other.freshUntil || (other.requiresRevalidation && !requiresRevalidation)
  }
}
