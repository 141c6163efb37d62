internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// A stored answer that a load might use.
struct Candidate: Sendable {
  var key: CacheKey
  var metadata: StoredMetadata
  /// The bytes, where the disk had them at hand.
  var data: Data? = nil
}

/// The stores as one load sees one resource: memory in front, the durable store behind it.
///
/// A layer that fails is reported and treated as a miss; it never fails a load.
struct Shelf: Sendable {
  /// Bytes that were read, and from where.
  struct Kept {
    var data: Data
    var source: ResourceSource
  }

  let load: ResolvedLoad
  let resource: String

  private var memory: MemoryFacets? { load.reads.contains(.memory) ? load.memory.map(MemoryFacets.init) : nil }
  private var disk: (any CacheStore)? { load.reads.contains(.disk) ? load.store : nil }
  private var writableMemory: MemoryFacets? { load.writes.contains(.memory) ? load.memory.map(MemoryFacets.init) : nil }
  private var writableDisk: (any CacheStore)? { load.writes.contains(.disk) ? load.store : nil }

  // MARK: Reading

  /// The answer in memory that can be used right now, without any suspension.
  func hit(_ request: HTTPRequest) -> Candidate? {
    let elements = elementsInMemory
    guard !elements.isEmpty else { return nil }
    let chosen: MemoryIndex.Element
    if elements.count == 1, request.headerFields.isEmpty, load.policy == .standard, request.method == .get,
      elements[0].metadata.request.headerFields.isEmpty, load.validator != nil
    {
      // Nothing to select by and nothing asked for: the facts that the validator left are all there is to know.
      guard elements[0].metadata.facts.isFresh(at: load.clock.now) else { return nil }
      chosen = elements[0]
    } else {
      guard case .use(let index, nil) = Planner(load).plan(request, stored: elements.map(\.metadata)) else { return nil }
      chosen = elements[index]
    }
    guard load.acceptedStatuses.contains(chosen.metadata.response.status.code) else { return nil }
    return Candidate(key: CacheKey(resource: resource, variant: chosen.variant), metadata: chosen.metadata)
  }

  /// What memory knows of the resource, but for what its own time to live has ended.
  private var elementsInMemory: [MemoryIndex.Element] {
    guard let elements = memory?.index(of: resource)?.elements else { return [] }
    guard elements.contains(where: { $0.metadata.expiration != nil }) else { return elements }
    let now = load.clock.now
    return elements.filter { now < $0.metadata.expiration?.deadline(from: $0.metadata.responseTime) ?? .distantFuture }
  }

  /// A facet of a candidate in memory.
  func value<Value: Sendable>(of candidate: Candidate, form: String, as type: Value.Type) -> Value? {
    memory?.value(of: candidate.key.with(form: form), for: candidate.metadata, as: type)
  }

  /// What is stored of the resource. Memory alone is asked when it has a body for its answers: the disk could not know better.
  func candidates(for request: HTTPRequest) async throws(CacheError) -> [Candidate] {
    let inMemory = elementsInMemory.map {
      Candidate(key: CacheKey(resource: resource, variant: $0.variant), metadata: $0.metadata)
    }
    let hasBodies = !inMemory.isEmpty && inMemory.allSatisfy { value(of: $0, form: "", as: Data.self) != nil }
    guard let disk, !hasBodies else { return inMemory.filter { value(of: $0, form: "", as: Data.self) != nil } }
    var merged: [Candidate]
    do throws(CacheError) {
      merged = try await disk.variants(of: resource).map { Candidate(key: $0.key, metadata: $0.metadata, data: $0.body.data) }
    } catch {
      if error.isCancellation { throw error }
      load.observe(.readFailed(resource: resource, error: error))
      merged = []
    }
    for candidate in inMemory {
      guard let index = merged.firstIndex(where: { $0.key == candidate.key }) else {
        if value(of: candidate, form: "", as: Data.self) != nil { merged.append(candidate) }
        continue
      }
      // A 304 may have reached one layer and not the other: the later word counts.
      if merged[index].metadata.revision == candidate.metadata.revision,
        merged[index].metadata.responseTime < candidate.metadata.responseTime
      {
        merged[index].metadata = candidate.metadata
      }
    }
    return merged
  }

  /// The bytes of a candidate, from memory or else from the disk, which puts them into memory. Nil: they are gone, or damaged.
  func read(_ candidate: Candidate) async -> Kept? {
    if let data = value(of: candidate, form: "", as: Data.self) { return Kept(data: data, source: .memory) }
    if let data = candidate.data {
      remember(data, candidate)
      return Kept(data: data, source: .disk)
    }
    guard let disk else { return nil }
    do throws(CacheError) {
      guard let entry = try await disk.open(candidate.key), entry.metadata.revision == candidate.metadata.revision else {
        return nil
      }
      let data = try await entry.body.collect(limit: load.maximumBodySize)
      remember(data, candidate)
      return Kept(data: data, source: .disk)
    } catch {
      if !error.isCancellation { load.observe(.readFailed(resource: resource, error: error)) }
      return nil
    }
  }

  // MARK: Writing

  /// Puts bytes and metadata into memory.
  func remember(_ data: Data, _ candidate: Candidate) {
    guard let memory = writableMemory else { return }
    guard memory.insert(data, cost: data.count, of: candidate.key, for: candidate.metadata) else { return }
    rememberMetadata(candidate)
    load.observe(.stored(key: candidate.key, layer: .memory, bytes: Int64(data.count)))
  }

  private func rememberMetadata(_ candidate: Candidate) {
    guard let memory = writableMemory else { return }
    var index = memory.index(of: resource) ?? MemoryIndex()
    index.replace(candidate.key.variant, with: candidate.metadata)
    memory.setIndex(index, of: resource)
  }

  /// Replaces the metadata after a 304, in every layer that may be written. The body stays as it is.
  func freshen(_ candidate: Candidate, data: Data) async {
    remember(data, candidate)
    if let disk = writableDisk {
      do throws(CacheError) {
        _ = try await disk.refresh(candidate.key, candidate.metadata, ifRevision: candidate.metadata.revision)
      } catch {
        load.observe(.storeFailed(key: candidate.key, error: error))
      }
    }
    load.observe(.freshened(key: candidate.key))
  }

  /// Starts an entry on disk, when that is to be written and can be.
  func writer(_ candidate: Candidate) async -> (any EntryWriter)? {
    guard let disk = writableDisk else { return nil }
    do throws(CacheError) {
      return try await disk.begin(candidate.key, candidate.metadata)
    } catch {
      load.observe(.storeFailed(key: candidate.key, error: error))
      return nil
    }
  }

  /// Removes answers that another one has replaced.
  func drop(_ outdated: [Candidate]) async {
    guard !outdated.isEmpty else { return }
    if let memory = writableMemory, var index = memory.index(of: resource) {
      for candidate in outdated {
        index.elements.removeAll { $0.variant == candidate.key.variant && $0.metadata.revision == candidate.metadata.revision }
        memory.store.remove(candidate.key, ifRevision: candidate.metadata.revision)
      }
      memory.setIndex(index, of: resource)
    }
    guard let disk = writableDisk else { return }
    for candidate in outdated {
      do throws(CacheError) {
        try await disk.remove(candidate.key, ifRevision: candidate.metadata.revision)
      } catch {
        load.observe(.storeFailed(key: candidate.key, error: error))
      }
    }
  }

  /// Removes everything that is stored of the resource, from the given layers.
  func removeAll(from layers: CacheLayers = .all) async throws(CacheError) {
    if layers.contains(.memory), let memory = load.memory { MemoryFacets(store: memory).remove(resource) }
    guard layers.contains(.disk), let store = load.store else { return }
    for variant in try await store.variants(of: resource) { try await store.remove(variant.key, ifRevision: nil) }
  }
}
