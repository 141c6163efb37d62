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
    copyTable.forget(key)
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
