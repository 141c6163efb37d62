internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// How a load changes the stores: never an older word over a later one, never what was removed meanwhile, and never two layers
/// that contradict each other.
extension TieredCache {
  private var memory: MemoryTier? { load.writes.contains(.memory) ? load.memory.map(MemoryTier.init) : nil }
  private var disk: (any CacheStore)? { load.writes.contains(.disk) ? load.store : nil }

  private func hasBeenRemoved() -> Bool { load.invalidations.current != logPosition }

  /// Puts what the disk has into memory.
  func promote(_ data: Data, _ candidate: Candidate) {
    keepInMemory(data, candidate) { _ in !hasBeenRemoved() }
  }

  /// Puts into memory what the disk says of an answer, whose body stays there.
  func promote(_ candidate: Candidate) { keepInMemory(nil, candidate) { _ in !hasBeenRemoved() } }

  /// Puts bytes and metadata into memory. The metadata stays even where the bytes are refused: an older answer must not stand
  /// there.
  ///
  /// - Parameter data: nil: they were left where they are.
  private func keepInMemory(_ data: Data?, _ candidate: Candidate, if isAllowed: (StoredMetadata?) -> Bool) {
    guard let memory else { return }
    let key = candidate.key
    guard load.target.isMemory else { return correct(memory, candidate, if: isAllowed) }
    guard memory.record(candidate.metadata, variant: key.variant, of: key.resource, if: isAllowed), let data else { return }
    if memory.insert(data, cost: data.count, of: key, for: candidate.metadata) {
      load.observe(.stored(key: key, layer: .memory, bytes: Int64(data.count)))
    }
  }

  /// Brings what memory says up to date, for a load whose bytes go elsewhere: where memory knows nothing, there is nothing to
  /// correct.
  private func correct(_ memory: MemoryTier, _ candidate: Candidate, if isAllowed: (StoredMetadata?) -> Bool) {
    let (key, revision) = (candidate.key, candidate.metadata.revision)
    guard
      memory.record(candidate.metadata, variant: key.variant, of: key.resource, if: { $0 != nil && isAllowed($0) }),
      let former = memory.store.entry(for: key)?.revision, former != revision
    else { return }
    memory.store.remove(key, ifRevision: former)
  }

  /// Puts a new answer into memory whose way into the durable store takes its time: who asks now is not to wait for that.
  func keepEarly(_ data: Data, _ candidate: Candidate) {
    if let survivor = surviving(candidate) { keepInMemory(data, survivor) { _ in true } }
  }

  /// Stores a new answer in memory, and sees to it that no layer goes on serving the one before it.
  ///
  /// - Parameters:
  ///   - isOnDisk: whether the disk has committed it.
  ///   - outdated: what else it replaces.
  func store(_ data: Data, _ candidate: Candidate, isOnDisk: Bool, replacing outdated: [Candidate], known: [Candidate]) async {
    let survivor = surviving(candidate)
    if let survivor { keepInMemory(data, survivor) { _ in true } }
    if memory == nil || survivor == nil, let other = load.memory {
      MemoryTier(store: other).forget(candidate.key.variant, of: resource) { $0 != candidate.metadata.revision }
    }
    let gone = outdated.filter { $0.key != candidate.key }
    let mayBeOnDisk = known.contains { $0.key == candidate.key } || !load.reads.contains(.disk)
    if !isOnDisk, mayBeOnDisk, let other = load.store {
      await remove(candidate.key, ifRevision: nil, from: other)
    }
    await drop(gone)
    // An exchange makes no transforms: where it found nothing it does not look for any.
    if !load.isExchange || !known.isEmpty { await dropTransforms(outdatedBy: candidate) }
    await settle(candidate)
  }

  /// Replaces the metadata after a 304. The body stays as it is.
  ///
  /// The disk has the first word: when its entry has moved on meanwhile, so has the resource, and memory is left alone.
  ///
  /// - Parameter data: the body; nil where it was left.
  func freshen(_ candidate: Candidate, data: Data?) async {
    guard let candidate = surviving(candidate) else { return }
    if await load.writeDeadline.wait(load, for: { await freshenAll(candidate, data: data) }) == nil {
      keepInMemory(data, candidate) { $0?.revision == candidate.metadata.revision }
    }
  }

  private func freshenAll(_ candidate: Candidate, data: Data?) async {
    let revision = candidate.metadata.revision
    var isCurrent: Bool?
    if let disk { isCurrent = await refresh(candidate, on: disk) }
    keepInMemory(data, candidate) { known in
      // What still stands there has not been removed, whatever else has been.
      known.map { $0.revision == revision } ?? (isCurrent == true && !hasBeenRemoved())
    }
    load.observe(.revalidated(key: candidate.key))
    await settle(candidate)
  }

  /// Replaces the metadata of the original, and of those transforms that are known to stand beside it or are wanted. The others
  /// take the later word over when they are used.
  ///
  /// - Returns: whether anything of that revision is there; nil: nobody could tell.
  func refresh(_ candidate: Candidate, on disk: any CacheStore) async -> Bool? {
    var isCurrent: Bool?
    var entries = candidate.isInTransformsAlone ? [] : [(key: candidate.key, length: candidate.metadata.bodyLength)]
    do throws(CacheError) {
      entries += try await transforms(beside: candidate, on: disk)
    } catch {
      load.observe(.storeFailed(key: candidate.key, error: error))
    }
    for (key, length) in entries {
      var metadata = candidate.metadata
      if metadata.bodyLength != length { metadata.bodyLength = length }
      do throws(CacheError) {
        let isThere = try await disk.updateMetadata(of: key, to: metadata, ifRevision: metadata.revision)
        isCurrent = isThere || isCurrent == true
      } catch {
        load.observe(.storeFailed(key: key, error: error))
      }
    }
    return isCurrent
  }

  /// Starts an entry on disk, when that is to be written and can be.
  ///
  /// - Throws: why it can't be, to a load that is for the disk alone.
  func writer(_ candidate: Candidate) async throws(CacheError) -> (any EntryWriter)? {
    guard let disk else { return nil }
    do throws(CacheError) {
      return try await disk.makeWriter(for: candidate.key, metadata: candidate.metadata)
    } catch {
      load.observe(.storeFailed(key: candidate.key, error: error))
      if load.target.isStore { throw error }
      return nil
    }
  }

  /// Replaces the metadata of a stored answer in every layer that holds it; its body is not looked at.
  func update(_ candidate: Candidate) async {
    guard let candidate = surviving(candidate) else { return }
    if await load.writeDeadline.wait(load, for: { await updateAll(candidate) }) == nil { updateInMemory(candidate) }
  }

  private func updateAll(_ candidate: Candidate) async {
    if let disk { _ = await refresh(candidate, on: disk) }
    updateInMemory(candidate)
    await settle(candidate)
  }

  private func updateInMemory(_ candidate: Candidate) {
    _ = memory?.record(candidate.metadata, variant: candidate.key.variant, of: candidate.key.resource) {
      // What still stands there has not been removed.
      $0?.revision == candidate.metadata.revision
    }
  }

  /// Removes answers that another one has replaced, from every layer.
  func drop(_ outdated: [Candidate]) async {
    forgetInMemory(outdated)
    guard let store = load.store, !outdated.isEmpty else { return }
    _ = await load.writeDeadline.wait(load) {
      for candidate in outdated { await remove(candidate.key, ifRevision: candidate.metadata.revision, from: store) }
      await dropTransforms(of: outdated)
      // Perhaps late: who has read the disk before this does not put that into memory afterwards, nor keep it there.
      load.invalidations.advance()
      forgetInMemory(outdated)
    }
  }

  func forgetInMemory(_ outdated: [Candidate]) {
    guard let memory = load.memory else { return }
    for candidate in outdated {
      let revision = candidate.metadata.revision
      MemoryTier(store: memory).forget(candidate.key.variant, of: resource) { $0 == revision }
      memory.remove(candidate.key, ifRevision: revision)
    }
  }

  /// Carries out what an answer to `request` means for what is stored.
  ///
  /// - Parameter candidates: what the changes' indices point into.
  func apply(_ changes: StoreChanges, to candidates: [Candidate], of request: HTTPRequest) async {
    for update in changes.updates {
      var candidate = candidates[update.index]
      candidate.metadata = update.metadata
      await self.update(candidate)
    }
    await drop(changes.drops.map { candidates[$0] })
    for uri in changes.invalidations { await invalidate(uri, by: request) }
  }

  /// Removes what is stored under a URI, in the caller's partition; for the request's own URI also what is stored under the
  /// caller's own key.
  private func invalidate(_ uri: String, by request: HTTPRequest) async {
    var resources: Set = [ResourceID.make(uri: uri, partition: load.partition)]
    if ResourceID.uri(of: request) == uri { resources.insert(resource) }
    for resource in resources {
      do throws(CacheError) {
        // In every layer, whatever may be written: what is outdated must not be shown (RFC 9111 §4.4).
        try await TieredCache(load: load, resource: resource).removeAll(from: .all)
      } catch {
        load.observe(.storeFailed(key: CacheKey(resource: resource), error: error))
      }
    }
  }

  func remove(_ key: CacheKey, ifRevision revision: Revision?, from store: any CacheStore) async {
    do throws(CacheError) {
      try await store.remove(key, ifRevision: revision)
    } catch {
      load.observe(.storeFailed(key: key, error: error))
    }
  }

  /// Removes everything that is stored of the resource, from the given layers. From all of them: what is on its way is not stored
  /// either.
  func removeAll(from layers: CacheLayers) async throws(CacheError) {
    if layers == .all { load.invalidations.advance(removing: resource) } else { load.invalidations.advance() }
    if layers.contains(.memory), let memory = load.memory { MemoryTier(store: memory).remove(resource) }
    guard layers.contains(.disk), let store = load.store else { return }
    defer {
      // Who began after the first count may have put into memory what the disk still had.
      load.invalidations.advance()
      if layers.contains(.memory), let memory = load.memory { MemoryTier(store: memory).remove(resource) }
    }
    for variant in try await store.variants(of: resource) { try await store.remove(variant.key, ifRevision: nil) }
    for transform in try await store.transforms(of: resource) { try await store.remove(transform.key, ifRevision: nil) }
  }
}
