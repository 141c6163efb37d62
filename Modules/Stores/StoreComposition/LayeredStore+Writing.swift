public import CacheCore

extension LayeredStore {
  /// Starts an entry in each layer that accepts it, or with ``Writing/back`` only in the first such layer.
  ///
  /// - Throws: If no layer accepts the entry, the error of the first writable layer, or `CacheError.Code.readOnly` if there is
  ///   none.
  public func makeWriter(for key: CacheKey, metadata: StoredMetadata) async throws(CacheError) -> any EntryWriter {
    try await makeWriter(for: key, metadata, nil)
  }

  /// Starts an entry like ``makeWriter(for:metadata:)``. If one layer refuses the commit because of the lease, no layer stores
  /// the entry. The lease does not apply to a layer that gets its copy later (``Writing/back``).
  public func makeWriter(
    for key: CacheKey, metadata: StoredMetadata, lease: any RequestLease
  ) async throws(CacheError) -> any EntryWriter {
    try await makeWriter(for: key, metadata, lease)
  }

  private func makeWriter(
    for key: CacheKey, _ metadata: StoredMetadata, _ lease: (any RequestLease)?
  ) async throws(CacheError) -> any EntryWriter {
    var writers: [Int: any EntryWriter] = [:]
    var deferredLayers: Range<Int> = 0..<0
    var refusal: CacheError?
    for (index, layer) in layers.enumerated() {
      do throws(CacheError) {
        writers[index] = try await begin(key, metadata, lease, in: layer)
      } catch {
        if error.isCancellation {
          for writer in writers.values { writer.abort() }
          throw error
        }
        if refusal == nil || refusal?.code == .readOnly { refusal = error }
        continue
      }
      if configuration.writing == .back {
        deferredLayers = index + 1..<layers.count
        break
      }
    }
    guard !writers.isEmpty else { throw refusal ?? CacheError(.readOnly, reason: "no layer accepts entries") }
    return LayeredWriter(key, metadata, writers, deferredLayers: deferredLayers, self)
  }

  /// Starts an entry in one layer. A layer that could not be emptied is emptied first, so that its old entries do not reappear.
  /// Call it outside of changes, because that is a change itself.
  func begin(
    _ key: CacheKey, _ metadata: StoredMetadata, _ lease: (any RequestLease)? = nil, in layer: Layer
  ) async throws(CacheError) -> any EntryWriter {
    let writer = try await layer.makeWriter(for: key, metadata: metadata, lease)
    guard layer.hidesAll else { return writer }
    writer.abort()
    try await sweep(layer)
    return try await layer.makeWriter(for: key, metadata: metadata, lease)
  }

  private func sweep(_ layer: Layer) async throws(CacheError) {
    await barrier.beginSweep()
    defer { barrier.endSweep() }
    guard layer.hidesAll else { return }
    try await layer.removeAll()
    if layer.hidesAll { throw CacheError(.readOnly, reason: "the layer cannot be emptied") }
  }

  /// Returns the metadata of the entry that a lookup would find. A layer that fails counts as one without the entry.
  ///
  /// - Throws: Only a cancellation.
  func shown(_ key: CacheKey) async throws(CacheError) -> StoredMetadata? {
    for layer in layers {
      if let metadata = try await layer.metadata(of: key) { return metadata }
    }
    return nil
  }

  /// Removes the entry from every layer, unless a lookup would find another revision.
  ///
  /// - Throws: The first error of a layer, after every layer was tried. An entry that a layer could not remove is hidden. A
  ///   read-only layer that is not shared is not an error.
  public func remove(_ key: CacheKey, ifRevision revision: Revision?) async throws(CacheError) {
    await barrier.beginChange([key.resource])
    defer { barrier.endChange([key.resource]) }
    if let revision {
      guard try await shown(key)?.revision == revision else { return }
    }
    copyTable.forget([key])
    var failure: CacheError?
    for layer in layers {
      let error = await layer.remove(key)
      failure = failure ?? error
    }
    if let failure { throw failure }
  }

  /// Removes several entries from every layer, each in any revision.
  ///
  /// - Throws: The first error of a layer, after every layer was tried. An entry that a layer could not remove is hidden. A
  ///   read-only layer that is not shared is not an error.
  public func remove(_ keys: [CacheKey]) async throws(CacheError) {
    copyTable.forget(Set(keys))
    try await change(keys) { layer, keys in await layer.remove(keys) }
  }

  /// Marks several entries stale in every layer, each in any revision, because the layers may have different responses. A layer
  /// that fails loses the entries. For a read-only layer, see ``updateMetadata(of:to:ifRevision:)``.
  public func markStale(_ keys: [CacheKey], at now: Timestamp) async throws(CacheError) {
    let readOnly = Lock<[Layer]>([])
    try await change(keys) { layer, keys in
      let result = await layer.markStale(keys, at: now)
      if result.isReadOnly { readOnly.withLock { $0.append(layer) } }
      return result.failure
    }
    let layers = readOnly.withLock { $0 }
    guard !layers.isEmpty else { return }
    var failure: CacheError?
    for key in Set(keys) {
      do throws(CacheError) {
        var isKept = false
        for layer in layers where try await layer.metadata(of: key) != nil { isKept = true }
        if isKept, let metadata = try await shown(key) {
          _ = try await updateMetadata(of: key, to: metadata.markedStale(at: now), ifRevision: metadata.revision)
        }
        // The entry of a read-only layer may be another response than the one that lookups find.
        for layer in layers { await layer.hideIfFresh(key, at: now) }
      } catch {
        failure = failure ?? error
      }
    }
    if let failure { throw failure }
  }

  /// Changes entries in all layers at once. Copies of them that have begun before do not commit afterwards.
  private func change(
    _ keys: [CacheKey], _ change: @escaping @Sendable (Layer, [CacheKey]) async -> CacheError?
  ) async throws(CacheError) {
    // Other changes of a resource run between the steps. Two steps run at once, because a store on a server takes time to reply.
    let (step, width) = (1_024, 2)
    let failure = await withTaskGroup(of: CacheError?.self) { group in
      var failure: CacheError?
      for (number, start) in stride(from: 0, to: keys.count, by: step).enumerated() {
        if number >= width, let failed = await group.next() { failure = failure ?? failed }
        group.addTask { [self] in await changeAtOnce(Array(keys[start..<min(start + step, keys.count)]), change) }
      }
      return await group.reduce(failure) { $0 ?? $1 }
    }
    if let failure { throw failure }
  }

  private func changeAtOnce(
    _ keys: [CacheKey], _ change: @escaping @Sendable (Layer, [CacheKey]) async -> CacheError?
  ) async -> CacheError? {
    let resources = Array(Set(keys.lazy.map(\.resource)))
    await barrier.beginChange(resources)
    defer { barrier.endChange(resources) }
    guard layers.count > 1 else { return await change(layers[0], keys) }
    return await withTaskGroup(of: CacheError?.self) { group in
      for layer in layers { group.addTask { await change(layer, keys) } }
      return await group.reduce(nil) { $0 ?? $1 }
    }
  }

  /// Removes all entries from every layer. It waits for changes in progress, and later changes wait for it.
  ///
  /// - Throws: The first error of a layer, after every layer was tried. Entries that a layer could not remove are hidden. A
  ///   read-only layer that is not shared is not an error.
  public func removeAll() async throws(CacheError) {
    await barrier.beginSweep()
    defer { barrier.endSweep() }
    copyTable.forgetAll()
    var failure: CacheError?
    for layer in layers {
      do throws(CacheError) {
        try await layer.removeAll()
      } catch {
        failure = failure ?? error
      }
    }
    if let failure { throw failure }
  }
}

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

/// Copies between the layers: up after a hit, and down after a commit that did not wait for them.
extension LayeredStore {
  private enum Outcome { case copied, overtaken, gone, refused }

  /// Copies an entry in the background into the layers above the one it was found in. The copy reads the entry separately.
  func promote(_ entry: StoredEntry, from index: Int, _ snapshot: CopyBarrier.Watch) {
    guard configuration.promotionLimit > 0 else { return }
    let key = entry.key
    guard let length = entry.metadata.bodyLength, length <= configuration.promotionLimit else {
      return count { $0.skippedPromotions += 1 }
    }
    switch copyTable.begin(key) {
    case .busy: return count { $0.skippedPromotions += 1 }
    case .running: return
    case .begun: break
    }
    let revision = entry.metadata.revision
    Task { [self] in
      var isCopied = false
      for above in layers[..<index] {
        if await copy(key, revision, from: layers[index], to: above, snapshot) == .copied { isCopied = true }
      }
      if isCopied { count { $0.promotions += 1 } }
      copyTable.end(key)
    }
  }

  /// Copies stored entries into the lower layers, one after another.
  func writeBack(_ key: CacheKey) {
    guard copyTable.enqueueWriteBack(key) else { return }
    Task { [self] in
      while let key = copyTable.nextWriteBack() {
        await settle(key)
        copyTable.endWriteBack()
      }
    }
  }

  private func settle(_ key: CacheKey) async {
    await barrier.waitUntilIdle(key.resource)
    let snapshot = barrier.snapshot(key.resource)
    var source: (index: Int, revision: Revision)?
    for (index, layer) in layers.enumerated() where source == nil {
      source = (try? await layer.metadata(of: key)).flatMap { $0 }.map { (index, $0.revision) }
    }
    var isLost = source == nil
    for layer in source.map({ layers[($0.index + 1)...] }) ?? layers[...] {
      var outcome = Outcome.gone
      if let source { outcome = await copy(key, source.revision, from: layers[source.index], to: layer, snapshot) }
      switch outcome {
      case .copied: count { $0.writtenBack += 1 }
      case .overtaken: return writeBack(key)
      case .gone, .refused:
        isLost = true
        // The layer has an older entry under this key.
        guard barrier.beginCommit(snapshot) else { return writeBack(key) }
        _ = await layer.remove(key)
        barrier.endCommit(snapshot)
      }
    }
    if isLost { count { $0.lostWritesBack += 1 } }
  }

  private func copy(
    _ key: CacheKey, _ revision: Revision, from source: Layer, to target: Layer, _ snapshot: CopyBarrier.Watch
  ) async -> Outcome {
    let entry: StoredEntry
    do throws(CacheError) {
      guard !source.isHidden(key), let found = try await source.store.entry(for: key, range: nil),
        found.metadata.revision == revision
      else {
        return .gone
      }
      entry = found
    } catch {
      source.note(error)
      return .gone
    }
    do throws(CacheError) {
      let writer = try await begin(key, entry.metadata, in: target)
      defer { writer.abort() }
      while let chunk = try await entry.body.source.next() { try await writer.write(chunk) }
      guard barrier.beginCommit(snapshot) else { return .overtaken }
      defer { barrier.endCommit(snapshot) }
      _ = try await writer.commit(trailers: entry.metadata.trailers)
      target.show(key)
      return .copied
    } catch {
      target.note(error)
      return .refused
    }
  }
}
