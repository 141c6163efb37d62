internal import CacheCore

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
