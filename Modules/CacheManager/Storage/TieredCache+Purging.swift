internal import CacheCore

/// Applying purges to responses that were requested before the purge and are stored after it.
extension TieredCache {
  /// Returns a response as the purges since the load began leave it: unchanged or stale. Returns `nil` if it must not be stored.
  func surviving(_ candidate: Candidate) -> Candidate? {
    guard let purge = request.invalidations.outcome(for: candidate.key, candidate.metadata, since: logPosition) else {
      return candidate
    }
    return candidate.surviving(purge, at: request.clock.now)
  }

  /// Applies a purge that came while a response was being stored. The purge looked for the response before it was there.
  ///
  /// The disk comes first. Then the count of the log rises, so that a load that read the disk before does not put the response
  /// into memory afterwards.
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
    // A transform's entry has the length of the encoded value, which is not the original's.
    guard candidate.key.transform.isEmpty, let memory = request.memory else { return }
    _ = MemoryTier(store: memory).record(survivor.metadata, variant: candidate.key.variant, of: candidate.key.resource) {
      $0?.revision == revision
    }
  }
}

extension Candidate {
  /// Returns the candidate as a purge leaves it, or `nil` if the purge removes it.
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
