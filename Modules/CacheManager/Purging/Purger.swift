internal import CacheCore

/// Carries a purge out in both layers.
///
/// Memory comes twice. A load that looked at the disk before the purge got there may put what it saw into memory: either it does
/// so before the count goes up, and the second look finds it, or it is refused.
struct Purger: Sendable {
  let purge: Purge
  let memory: MemoryTier?
  let store: (any CacheStore)?
  let clock: any CacheClock
  let core: LoadCoordinator

  /// Goes on where an entry fails: what can be purged, is.
  ///
  /// - Returns: how many answers it met.
  /// - Throws: the first thing that failed.
  func run() async throws(CacheError) -> Int {
    var met: Set<CacheKey> = []
    var failure: CacheError?
    core.invalidations.advance(with: purge)
    // Also one that leads there by a redirect, whose name tells nothing of it.
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
        // What has replaced it since it was listed was asked for after the purge, or is looked at when it is stored.
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
  /// The same answer, stale from now on.
  func markedStale(at now: Timestamp) -> StoredMetadata {
    var metadata = self
    metadata.freshness = freshness.markedStale(at: now)
    return metadata
  }
}
