internal import CacheCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// What is stored of a resource in derived forms. Each carries the revision and the metadata of the original that it was made of, which may be gone: so it can be
/// confirmed by the original's validators, and is outdated as soon as a later body is known.
extension Shelf {
  /// The stored originals, and what stands there in forms alone that are enough for who waits.
  @inline(never)
  func withForms(_ originals: [Candidate], on disk: any CacheStore, for demand: Demand) async throws(CacheError) -> [Candidate] {
    let listed: [ListedEntry]
    do throws(CacheError) {
      listed = try await disk.forms(of: resource)
    } catch {
      if error.isCancellation { throw error }
      load.observe(.readFailed(resource: resource, error: error))
      return originals
    }
    var merged = originals
    for entry in listed where !isOutOfPlace(entry.metadata) { merged.merge(entry) }
    return merged.filter { !$0.isInFormsAlone || demand.isMet(by: $0.forms) }
  }

  /// The forms of a candidate that are known, and those that are wanted, which nobody has looked for where memory had the answer; with their lengths.
  func forms(
    beside candidate: Candidate, on disk: any CacheStore
  ) async throws(CacheError) -> [(key: CacheKey, length: Int64?)] {
    var found = candidate.forms.map { (key: candidate.key.with(form: $0.key), length: $0.value) }
    for form in load.demand?.forms ?? [] where candidate.forms[form] == nil {
      let key = candidate.key.with(form: form)
      if let entry = try await disk.open(key, range: 0..<0), entry.metadata.revision == candidate.metadata.revision {
        found.append((key, entry.metadata.bodyLength))
      }
    }
    return found
  }

  /// The encoded values of a candidate's forms. Nil: one of them can't be had, so whoever wants it needs the bytes.
  @inline(never)
  func readForms(
    _ forms: Set<String>, of candidate: Candidate, in store: any CacheStore
  ) async throws(CacheError) -> [String: Data]? {
    var encoded: [String: Data] = [:]
    for form in forms {
      encoded[form] = try await readForm(candidate.key.with(form: form), of: candidate.metadata, in: store)
      if encoded[form] == nil { return nil }
    }
    return encoded
  }

  /// The encoded value of a form, when it was made from the body that `metadata` describes. What is damaged, or was made from another body, is removed.
  ///
  /// - Throws: a cancellation.
  func readForm(
    _ key: CacheKey, of metadata: StoredMetadata, in store: any CacheStore
  ) async throws(CacheError) -> Data? {
    do throws(CacheError) {
      guard let entry = try await store.open(key) else { return nil }
      guard entry.metadata.revision == metadata.revision else {
        if entry.metadata.responseTime <= metadata.responseTime { await removeForm(key, entry.metadata.revision) }
        return nil
      }
      let data = try await entry.body.collect(limit: load.maximumBodySize)
      if entry.metadata.responseTime < metadata.responseTime { await takeOver(metadata, key, entry, in: store) }
      return data
    } catch {
      if error.isCancellation { throw error }
      load.observe(.readFailed(resource: key.resource, error: error))
      if error.code == .damagedEntry { await removeForm(key, metadata.revision) }
      return nil
    }
  }

  /// A 304 that came while a form was not asked for is its too: its time to live counts from there.
  private func takeOver(_ metadata: StoredMetadata, _ key: CacheKey, _ form: StoredEntry, in store: any CacheStore) async {
    guard load.writes.contains(.disk) else { return }
    _ = await load.patience.wait(load) {
      var confirmed = metadata
      confirmed.bodyLength = form.metadata.bodyLength
      do throws(CacheError) {
        _ = try await store.refresh(key, confirmed, ifRevision: metadata.revision)
      } catch {
        load.observe(.storeFailed(key: key, error: error))
      }
    }
  }

  func removeForm(_ key: CacheKey, _ revision: Revision) async {
    guard let store = load.store else { return }
    _ = await load.patience.wait(load) { await remove(key, ifRevision: revision, from: store) }
  }

  /// Whether a later body of the same answer is known than the one that a value was made of; `forms` are those that are stored of the resource.
  private func isSuperseded(_ candidate: Candidate, beside forms: [ListedEntry], in store: any CacheStore) async -> Bool {
    let (key, metadata) = (candidate.key, candidate.metadata)
    if let known = load.memory.map(MemoryFacets.init)?.index(of: resource)?.element(of: key.variant),
      known.revision != metadata.revision, known.responseTime >= metadata.responseTime
    {
      return true
    }
    func isLater(_ other: CacheKey, _ stored: StoredMetadata) -> Bool {
      other.variant == key.variant && stored.revision != metadata.revision && stored.responseTime > metadata.responseTime
    }
    if forms.contains(where: { isLater($0.key, $0.metadata) }) { return true }
    return (try? await store.variants(of: resource))?.contains { isLater($0.key, $0.metadata) } ?? false
  }

  /// Stores an encoded value under its form's key, with the metadata of its original.
  ///
  /// An older word is not put over a later one, nor anything that was removed meanwhile; and what is outdated by it goes.
  func keepForm(_ data: Data, _ candidate: Candidate, in store: any CacheStore) async {
    guard var kept = surviving(candidate), await !isSuperseded(kept, beside: (try? store.forms(of: resource)) ?? [], in: store)
    else { return }
    kept.metadata.bodyLength = Int64(data.count)
    do throws(CacheError) {
      kept.metadata = try await store.store(data, for: kept.key, kept.metadata)
    } catch {
      return load.observe(.storeFailed(key: kept.key, error: error))
    }
    load.observe(.stored(key: kept.key, layer: .disk, bytes: Int64(data.count)))
    // Who stored a later body in between looked for what it outdates before this was there.
    let forms = (try? await store.forms(of: resource)) ?? []
    if await isSuperseded(kept, beside: forms, in: store) { await removeForm(kept.key, kept.metadata.revision) }
    for form in forms where kept.outdates(form) { await remove(form.key, ifRevision: form.metadata.revision, from: store) }
    await settle(kept)
  }

  /// Stores the original of a value that can't be stored itself, unless it is there.
  func keepOriginal(_ data: Data, insteadOfFormOf candidate: Candidate, in store: any CacheStore) async {
    let revision = candidate.metadata.revision
    if let entry = try? await store.open(candidate.key, range: 0..<0), entry.metadata.revision == revision { return }
    guard let kept = surviving(candidate), await !isSuperseded(kept, beside: (try? store.forms(of: resource)) ?? [], in: store),
      await keepOriginal(data, kept) != nil
    else { return }
    await dropForms(outdatedBy: kept)
    await settle(kept)
  }

  /// Removes what was made of other bodies than the answer that is stored now.
  func dropForms(outdatedBy candidate: Candidate) async {
    await dropForms { candidate.outdates($0) }
  }

  /// Removes what was made of answers that are gone.
  func dropForms(of gone: [Candidate]) async {
    await dropForms { form in
      gone.contains { $0.key.variant == form.key.variant && $0.metadata.revision == form.metadata.revision }
    }
  }

  private func dropForms(where isGone: (ListedEntry) -> Bool) async {
    guard let store = load.store, load.removals.hasSeenForms else { return }
    do throws(CacheError) {
      for form in try await store.forms(of: resource) where isGone(form) {
        await remove(form.key, ifRevision: form.metadata.revision, from: store)
      }
    } catch {
      load.observe(.storeFailed(key: CacheKey(resource: resource), error: error))
    }
  }
}

extension Candidate {
  /// Whether a value was made of an earlier body of this answer.
  fileprivate func outdates(_ form: ListedEntry) -> Bool {
    form.key.variant == key.variant && form.metadata.revision != metadata.revision
      && form.metadata.responseTime <= metadata.responseTime
  }
}

extension [Candidate] {
  /// Takes a derived form in: beside its original, or in its place where that is gone, or older.
  fileprivate mutating func merge(_ form: ListedEntry) {
    var candidate = Candidate(key: form.key.with(form: ""), metadata: form.metadata)
    (candidate.forms, candidate.isInFormsAlone) = ([form.key.form: form.metadata.bodyLength], true)
    // What it says of its length is not the original's.
    candidate.metadata.bodyLength = nil
    guard let index = firstIndex(where: { $0.key == candidate.key }) else { return append(candidate) }
    let isLater = self[index].metadata.responseTime < candidate.metadata.responseTime
    guard self[index].metadata.revision == candidate.metadata.revision else {
      if isLater { self[index] = candidate }
      return
    }
    self[index].forms.merge(candidate.forms) { $1 }
    guard isLater else { return }
    candidate.metadata.bodyLength = self[index].metadata.bodyLength
    self[index].metadata = candidate.metadata
  }
}
