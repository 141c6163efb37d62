public import CacheCore

extension LayeredStore {
  /// Starts an entry in each layer that takes it; with ``Writing/back`` in the first of them alone.
  ///
  /// - Throws: when no layer takes it: what the first one said that can be written to, or else `CacheError.Code.readOnly`.
  public func makeWriter(for key: CacheKey, metadata: StoredMetadata) async throws(CacheError) -> any EntryWriter {
    var writers: [Int: any EntryWriter] = [:]
    var owed: Range<Int> = 0..<0
    var refusal: CacheError?
    for (index, layer) in layers.enumerated() {
      do throws(CacheError) {
        writers[index] = try await begin(key, metadata, in: layer)
      } catch {
        if error.isCancellation {
          for writer in writers.values { writer.abort() }
          throw error
        }
        if refusal == nil || refusal?.code == .readOnly { refusal = error }
        continue
      }
      if configuration.writing == .back {
        owed = index + 1..<layers.count
        break
      }
    }
    guard !writers.isEmpty else { throw refusal ?? CacheError(.readOnly, reason: "no layer takes entries") }
    return LayeredWriter(key, metadata, writers, owed: owed, self)
  }

  /// Starts an entry in one layer. What could not be removed from it at once must not come back with what is stored after it, so
  /// it is removed before; outside of changes, since that is one.
  func begin(_ key: CacheKey, _ metadata: StoredMetadata, in layer: Layer) async throws(CacheError) -> any EntryWriter {
    let writer = try await layer.makeWriter(for: key, metadata: metadata)
    guard layer.hidesAll else { return writer }
    writer.abort()
    try await sweep(layer)
    return try await layer.makeWriter(for: key, metadata: metadata)
  }

  private func sweep(_ layer: Layer) async throws(CacheError) {
    await barrier.beginSweep()
    defer { barrier.endSweep() }
    guard layer.hidesAll else { return }
    try await layer.removeAll()
    if layer.hidesAll { throw CacheError(.readOnly, reason: "the layer can't be emptied") }
  }

  /// The revision that a look would find.
  func shown(_ key: CacheKey) async throws(CacheError) -> Revision? {
    for layer in layers {
      if let revision = try await layer.revision(of: key) { return revision }
    }
    return nil
  }

  /// Removes the entry from every layer, unless what is shown is of another revision.
  ///
  /// - Throws: the first error of a layer, when all have been asked; what it could not remove is hidden. That a layer can only be
  ///   read is no error.
  public func remove(_ key: CacheKey, ifRevision revision: Revision?) async throws(CacheError) {
    await barrier.beginChange(key.resource)
    defer { barrier.endChange(key.resource) }
    if let revision {
      guard try await shown(key) == revision else { return }
    }
    copyTable.forget(key)
    var failure: CacheError?
    for layer in layers {
      let error = await layer.remove(key)
      failure = failure ?? error
    }
    if let failure { throw failure }
  }

  /// Removes everything from every layer. Waits for the changes under way; those that come meanwhile wait for it.
  ///
  /// - Throws: the first error of a layer, when all have been asked; what it could not remove is hidden. That a layer can only be
  ///   read is no error.
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
