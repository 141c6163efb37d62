internal import CacheCore

/// Carries out a purge in both layers.
///
/// Memory is purged twice. A load that has read the disk before the purge may put that response into memory. If it does so before
/// the log records the purge, the second pass finds the response. Later it is refused.
struct Purger: Sendable {
  let purge: Purge
  let memory: MemoryTier?
  let store: (any CacheStore)?
  let clock: any CacheClock
  let core: LoadCoordinator

  /// Runs the purge. If an entry fails, the purge goes on with the others.
  ///
  /// - Returns: The number of responses that matched.
  /// - Throws: The first error.
  func run() async throws(CacheError) -> Int {
    var met: Set<CacheKey> = []
    var failure: CacheError?
    core.invalidations.advance(with: purge)
    // Also a response that a redirect leads to, because its name does not tell that.
    core.coalescer.closeToOthers()
    purgeMemory(&met, &failure)
    if let store {
      await purge(store, &met, &failure)
      core.invalidations.advance()
      purgeMemory(&met, &failure)
    }
    if let failure { throw failure }
    return met.count
  }

  private func purgeMemory(_ met: inout Set<CacheKey>, _ failure: inout CacheError?) {
    guard let memory else { return }
    do throws(CacheError) {
      met.formUnion(try memory.purge(purge, at: clock.now))
    } catch {
      failure = failure ?? error
    }
  }

  private func purge(_ store: any CacheStore, _ met: inout Set<CacheKey>, _ failure: inout CacheError?) async {
    let listed: [ListedEntry]
    do throws(CacheError) {
      listed = try await list(store)
    } catch {
      failure = failure ?? error
      return
    }
    for entry in listed {
      do throws(CacheError) {
        // A response that has replaced it since it was listed was requested after the purge, or is checked when it is stored.
        let revision = entry.metadata.revision
        switch purge.mode {
        case .hard: try await store.remove(entry.key, ifRevision: revision)
        case .soft:
          let stale = entry.metadata.markedStale(at: clock.now)
          guard try await store.updateMetadata(of: entry.key, to: stale, ifRevision: revision) else { continue }
        }
        met.insert(entry.key.with(transform: ""))
      } catch {
        failure = failure ?? error
      }
    }
  }

  private func list(_ store: any CacheStore) async throws(CacheError) -> [ListedEntry] {
    guard let resource = purge.resource else { return try await store.entries { [purge] in purge.meets($0, $1) } }
    let originals = try await store.variants(of: resource).map { ListedEntry(key: $0.key, metadata: $0.metadata) }
    return try await originals + store.transforms(of: resource)
  }
}

extension StoredMetadata {
  /// Returns the metadata marked stale from now on.
  func markedStale(at now: Timestamp) -> StoredMetadata {
    var metadata = self
    metadata.freshness = freshness.markedStale(at: now)
    return metadata
  }
}
