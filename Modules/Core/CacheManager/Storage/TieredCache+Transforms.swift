internal import CacheCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The stored values of a resource's transforms. Each has the revision and the metadata of the original from which it was made,
/// which may no longer be stored. The original's validators can therefore confirm the value. The value becomes outdated as soon
/// as a later body is known.
extension TieredCache {
  /// Returns the stored originals. If the stored values of transforms are sufficient for the waiters, also returns responses
  /// whose originals are not stored.
  ///
  /// - Parameter failure: The error of the lookup so far. It is set if the store fails.
  @inline(never)
  func withTransforms(
    _ originals: [Candidate], on disk: any CacheStore, for representation: RequestedRepresentation,
    _ failure: inout CacheError.Code?
  ) async throws(CacheError) -> [Candidate] {
    let listed: [ListedEntry]
    do throws(CacheError) {
      listed = try await read { [resource] () throws(CacheError) in try await disk.transforms(of: resource) }
    } catch {
      if error.isCancellation { throw error }
      // One event for each lookup is enough.
      if failure == nil { request.observe(.readFailed(resource: resource, error: error)) }
      failure = failure ?? error.code
      return originals
    }
    var merged = originals
    let now = request.clock.now
    for entry in listed where !isUnusable(entry.metadata) { merged.merge(entry, at: now) }
    return merged.filter { !$0.isInTransformsAlone || representation.isSatisfied(by: $0.transforms) }
  }

  /// Returns the stored transforms of a candidate, with their lengths: those that the lookup found, and those that waiters want.
  /// The lookup does not search for transforms if memory has the response.
  func transforms(
    beside candidate: Candidate, on disk: any CacheStore
  ) async throws(CacheError) -> [(key: CacheKey, length: Int64?)] {
    var found = candidate.transforms.map { (key: candidate.key.with(transform: $0.key), length: $0.value) }
    for transform in request.representation?.transforms ?? [] where candidate.transforms[transform] == nil {
      let key = candidate.key.with(transform: transform)
      do throws(CacheError) {
        guard let entry = try await disk.entry(for: key, range: 0..<0), entry.metadata.revision == candidate.metadata.revision
        else { continue }
        found.append((key, entry.metadata.bodyLength))
      } catch {
        if error.isCancellation { throw error }
        request.observe(.readFailed(resource: resource, error: error))
      }
    }
    return found
  }

  /// Returns the encoded values of a candidate's transforms, or `nil` if one of them cannot be read. The waiter that wants that
  /// value then needs the bytes.
  @inline(never)
  func readTransforms(
    _ transforms: Set<String>, of candidate: Candidate, in store: any CacheStore
  ) async throws(CacheError) -> [String: Data]? {
    var encoded: [String: Data] = [:]
    for transform in transforms {
      encoded[transform] = try await readTransform(candidate.key.with(transform: transform), of: candidate.metadata, in: store)
      if encoded[transform] == nil { return nil }
    }
    return encoded
  }

  /// Returns the encoded value of a transform if it was made from the body that `metadata` describes. A value that is damaged, or
  /// was made from another body, is removed.
  ///
  /// - Throws: A cancellation.
  func readTransform(
    _ key: CacheKey, of metadata: StoredMetadata, in store: any CacheStore
  ) async throws(CacheError) -> Data? {
    do throws(CacheError) {
      guard let entry = try await read({ () throws(CacheError) in try await store.entry(for: key) }) else { return nil }
      guard entry.metadata.revision == metadata.revision else {
        if !entry.metadata.isLater(than: metadata, at: request.clock.now) { await removeTransform(key, entry.metadata.revision) }
        return nil
      }
      let data = try await bounded(entry.body).collect(limit: request.maximumBodySize)
      if entry.metadata.responseTime != metadata.responseTime, !entry.metadata.isLater(than: metadata, at: request.clock.now) {
        await takeOver(metadata, key, entry, in: store)
      }
      return data
    } catch {
      if error.isCancellation { throw error }
      request.observe(.readFailed(resource: key.resource, error: error))
      if error.code == .damagedEntry { await removeTransform(key, metadata.revision) }
      return nil
    }
  }

  /// Updates a transform's metadata after a 304 for another load, which did not request the transform. Its time to live counts
  /// from that 304.
  private func takeOver(_ metadata: StoredMetadata, _ key: CacheKey, _ transform: StoredEntry, in store: any CacheStore) async {
    guard request.writes.contains(.disk) else { return }
    _ = await change(key) {
      var confirmed = metadata
      confirmed.bodyLength = transform.metadata.bodyLength
      do throws(CacheError) {
        _ = try await store.updateMetadata(of: key, to: confirmed, ifRevision: metadata.revision)
      } catch {
        request.observe(.storeFailed(key: key, error: error))
      }
    }
  }

  func removeTransform(_ key: CacheKey, _ revision: Revision) async {
    guard let store = request.store else { return }
    _ = await request.writeDeadline.wait(request) { await remove(key, ifRevision: revision, from: store) }
  }

  /// Whether a body of the same variant is known that is later than the body from which a value was made.
  ///
  /// - Parameter transforms: The stored transforms of the resource.
  private func isSuperseded(_ candidate: Candidate, beside transforms: [ListedEntry], in store: any CacheStore) async -> Bool {
    let (key, metadata) = (candidate.key, candidate.metadata)
    let known = request.memory.map(MemoryTier.init)?.index(of: resource)?.metadata(of: key.variant)
    let originals = (try? await store.variants(of: resource)) ?? []
    // The clock is read after the lookups: a response that arrives after an earlier reading would count as one of the future.
    let now = request.clock.now
    func isLater(_ other: StoredMetadata) -> Bool {
      other.revision != metadata.revision && other.isLater(than: metadata, at: now)
    }
    if let known, isLater(known) || (known.revision != metadata.revision && known.responseTime == metadata.responseTime) {
      return true
    }
    return transforms.contains { $0.key.variant == key.variant && isLater($0.metadata) }
      || originals.contains { $0.key.variant == key.variant && isLater($0.metadata) }
  }

  /// Stores an encoded value under its transform's key, with the metadata of its original.
  ///
  /// An older value does not replace a later one, and a removed response is not stored again. Values that this one outdates are
  /// removed.
  func storeTransform(_ data: Data, _ candidate: Candidate, in store: any CacheStore) async {
    let ticket = ticket(for: candidate, in: store)
    guard await ticket.enter() else { return }
    defer { ticket.leave() }
    guard var survivor = surviving(candidate),
      await !isSuperseded(survivor, beside: (try? store.transforms(of: resource)) ?? [], in: store)
    else { return }
    survivor.metadata.bodyLength = Int64(data.count)
    let start = request.observationStart
    do throws(CacheError) {
      survivor.metadata = try await store.store(data, for: survivor.key, metadata: survivor.metadata)
    } catch {
      return request.observe(.storeFailed(key: survivor.key, error: error))
    }
    request.observeStored(survivor.key, Int64(data.count), since: start)
    // A load that stored a later body in the meantime looked for outdated values before this one was stored.
    let transforms = (try? await store.transforms(of: resource)) ?? []
    if await isSuperseded(survivor, beside: transforms, in: store) {
      await removeTransform(survivor.key, survivor.metadata.revision)
    }
    let now = request.clock.now
    for transform in transforms where survivor.outdates(transform, at: now) {
      await remove(transform.key, ifRevision: transform.metadata.revision, from: store)
    }
    await applyPurge(to: survivor)
  }

  /// Stores the original of a value that cannot be stored itself, unless the original is already stored.
  func storeOriginal(_ data: Data, insteadOfTransformOf candidate: Candidate, in store: any CacheStore) async {
    let ticket = ticket(for: candidate, in: store)
    guard await ticket.enter() else { return }
    defer { ticket.leave() }
    let revision = candidate.metadata.revision
    if let entry = try? await store.entry(for: candidate.key, range: 0..<0), entry.metadata.revision == revision { return }
    guard let survivor = surviving(candidate),
      await !isSuperseded(survivor, beside: (try? store.transforms(of: resource)) ?? [], in: store),
      await storeOriginal(data, survivor) != nil
    else { return }
    request.commitOrder.noteCommit(of: resource)
    await dropTransforms(outdatedBy: survivor)
    await applyPurge(to: survivor)
  }

  /// Removes the values that were made from bodies other than that of the newly stored response.
  func dropTransforms(outdatedBy candidate: Candidate) async {
    await dropTransforms { candidate.outdates($0, at: request.clock.now) }
  }

  /// Removes the values that were made from removed responses.
  func dropTransforms(of gone: [Candidate]) async {
    await dropTransforms { transform in
      gone.contains { $0.key.variant == transform.key.variant && $0.metadata.revision == transform.metadata.revision }
    }
  }

  private func dropTransforms(where isGone: (ListedEntry) -> Bool) async {
    guard let store = request.store, request.invalidations.hasSeenTransforms else { return }
    do throws(CacheError) {
      for transform in try await store.transforms(of: resource) where isGone(transform) {
        await remove(transform.key, ifRevision: transform.metadata.revision, from: store)
      }
    } catch {
      request.observe(.readFailed(resource: resource, error: error))
    }
  }
}

extension Candidate {
  /// Whether a value was made from an earlier body of this response.
  fileprivate func outdates(_ transform: ListedEntry, at now: Timestamp) -> Bool {
    transform.key.variant == key.variant && transform.metadata.revision != metadata.revision
      && !transform.metadata.isLater(than: metadata, at: now)
  }
}

extension [Candidate] {
  /// Adds a stored value to its original, or replaces an original that is missing or older.
  fileprivate mutating func merge(_ transform: ListedEntry, at now: Timestamp) {
    var candidate = Candidate(key: transform.key.with(transform: ""), metadata: transform.metadata)
    (candidate.transforms, candidate.isInTransformsAlone) = ([transform.key.transform: transform.metadata.bodyLength], true)
    // The value's metadata has the length of the value, and not that of the original.
    candidate.metadata.bodyLength = nil
    guard let index = firstIndex(where: { $0.key == candidate.key }) else { return append(candidate) }
    let isLater = candidate.metadata.isLater(than: self[index].metadata, at: now)
    guard self[index].metadata.revision == candidate.metadata.revision else {
      if isLater { self[index] = candidate }
      return
    }
    self[index].transforms.merge(candidate.transforms) { $1 }
    guard isLater else { return }
    candidate.metadata.bodyLength = self[index].metadata.bodyLength
    self[index].metadata = candidate.metadata
  }
}
