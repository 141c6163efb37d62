internal import CacheCore

/// What a load does that finds, when it stores, that its answer has been purged while it was under way.
extension TieredCache {
  /// An answer as the purges since the load began leave it: as it is, or stale. Nil: it is not to be stored.
  func surviving(_ candidate: Candidate) -> Candidate? {
    guard let purge = request.invalidations.outcome(for: candidate.key, candidate.metadata, since: logPosition) else {
      return candidate
    }
    return candidate.surviving(purge, at: request.clock.now)
  }

  /// Makes good what was stored a moment ago, when a purge has come in between: it has looked for it before it was there.
  ///
  /// The disk first. Then the count goes up, so that nobody who has read the disk before puts that into memory afterwards.
  func settle(_ candidate: Candidate) async {
    guard let purge = request.invalidations.outcome(for: candidate.key, candidate.metadata, since: logPosition) else { return }
    await settle(candidate, purge)
  }

  @inline(never)
  private func settle(_ candidate: Candidate, _ purge: PurgeMode) async {
    guard let survivor = candidate.surviving(purge, at: request.clock.now) else {
      return await drop([candidate])
    }
    let revision = candidate.metadata.revision
    if let store = request.store { _ = await refresh(survivor, on: store) }
    request.invalidations.advance()
    // What a transform's entry says of its length is not the original's.
    guard candidate.key.transform.isEmpty, let memory = request.memory else { return }
    _ = MemoryTier(store: memory).record(survivor.metadata, variant: candidate.key.variant, of: candidate.key.resource) {
      $0?.revision == revision
    }
  }
}

extension Candidate {
  /// What a purge leaves of it; nil: nothing.
  fileprivate func surviving(_ purge: PurgeMode, at now: Timestamp) -> Candidate? {
    switch purge {
    case .hard: return nil
    case .soft:
      var survivor = self
      survivor.metadata = metadata.markedStale(at: now)
      return survivor
    }
  }
}
