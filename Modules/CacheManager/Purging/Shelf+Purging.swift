internal import CacheCore

/// What a load does that finds, when it stores, that its answer has been purged while it was under way.
extension Shelf {
  /// An answer as the purges since the load began leave it: as it is, or stale. Nil: it is not to be stored.
  func surviving(_ candidate: Candidate) -> Candidate? {
    switch load.removals.outcome(for: candidate.key, candidate.metadata, since: epoch) {
    case nil: return candidate
    case .hard: return nil
    case .soft:
      var survivor = candidate
      survivor.metadata = candidate.metadata.markedStale(at: load.clock.now)
      return survivor
    }
  }

  /// Makes good what was stored a moment ago, when a purge has come in between: it has looked for it before it was there.
  ///
  /// The disk first. Then the count goes up, so that nobody who has read the disk before puts that into memory afterwards.
  func settle(_ candidate: Candidate) async {
    let revision = candidate.metadata.revision
    guard let survivor = surviving(candidate) else {
      await drop([candidate])
      load.removals.advance()
      forgetInMemory([candidate])
      return
    }
    guard survivor.metadata != candidate.metadata else { return }
    if let disk = load.store {
      do throws(CacheError) {
        _ = try await disk.refresh(candidate.key, survivor.metadata, ifRevision: revision)
      } catch {
        load.observe(.storeFailed(key: candidate.key, error: error))
      }
    }
    load.removals.advance()
    guard let memory = load.memory else { return }
    _ = MemoryFacets(store: memory).record(survivor.metadata, variant: candidate.key.variant, of: candidate.key.resource) {
      $0?.revision == revision
    }
  }
}
