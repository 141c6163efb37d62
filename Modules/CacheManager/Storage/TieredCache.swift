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
  /// The stored transforms that a load has asked for, with their lengths in bytes.
  var transforms: [String: Int64?] = [:]
  /// Whether the original itself is not stored.
  var isInTransformsAlone = false
}

/// The stores as one load sees one resource: memory in front, the durable store behind it.
///
/// A layer that fails is reported and treated as a miss; it never fails a load. What changes the stores is in
/// `TieredCache+Writing.swift`.
struct TieredCache: Sendable {
  /// Bytes that were read, and from where.
  struct Kept {
    var data: Data
    var source: ResourceSource
    /// The bytes were not read: who waits is content with the transforms that are stored.
    var isBodyLeft = false
    /// Those transforms' encoded values.
    var encoded: [String: Data] = [:]
    /// What ``data`` takes of the memory budget; nil: it is the memory store's.
    var share: MemoryReservation? = nil
  }

  let load: ResolvedRequest
  let resource: String
  /// What had been removed when the load began to look: see ``InvalidationLog``.
  let logPosition: Int

  init(load: ResolvedRequest, resource: String) {
    self.load = load
    self.resource = resource
    logPosition = load.invalidations.current
  }

  private init(load: ResolvedRequest, resource: String, logPosition: Int) {
    self.load = load
    self.resource = resource
    self.logPosition = logPosition
  }

  /// The same resource for another load, which has begun to look when this one did: what was removed since then has been removed
  /// for it too.
  func seen(by load: ResolvedRequest) -> TieredCache { TieredCache(load: load, resource: resource, logPosition: logPosition) }

  /// Another resource, for the same load.
  func of(_ resource: String) -> TieredCache { TieredCache(load: load, resource: resource, logPosition: logPosition) }

  /// For an answer that is the resource's new state: what was asked for before is outdated (RFC 9111 §4.4).
  func begunAnew() -> TieredCache {
    load.invalidations.advance(removing: resource)
    return TieredCache(load: load, resource: resource)
  }

  private var memory: MemoryTier? { load.reads.contains(.memory) ? load.memory.map(MemoryTier.init) : nil }
  private var disk: (any CacheStore)? { load.reads.contains(.disk) ? load.store : nil }

  /// The answer in memory that can be used right now, without any suspension.
  func hit(_ request: HTTPRequest) -> Candidate? {
    let elements = elementsInMemory
    guard !elements.isEmpty else { return nil }
    let chosen: VariantIndex.Element
    if elements.count == 1, request.headerFields.isEmpty, load.policy == .standard, request.method == .get,
      elements[0].metadata.request.headerFields.isEmpty, load.validator != nil
    {
      // Nothing to select by and nothing asked for: the facts that the validator left are all there is to know.
      guard elements[0].metadata.freshness.isFresh(at: load.clock.now) else { return nil }
      chosen = elements[0]
    } else {
      guard case .use(let index, nil) = Planner(load).plan(request, stored: elements.map(\.metadata)) else { return nil }
      chosen = elements[index]
    }
    guard load.isResult(chosen.metadata.response) else { return nil }
    return Candidate(key: CacheKey(resource: resource, variant: chosen.variant), metadata: chosen.metadata)
  }

  /// The answer that the durable store has at hand and that may be used as it is, of a resource that memory knows nothing of.
  func responseWithoutWaiting(to request: HTTPRequest) -> Candidate? {
    guard let disk, elementsInMemory.isEmpty, let stored = disk.variantsWithoutWaiting(of: resource) else { return nil }
    let candidates = stored.filter { !isOutOfPlace($0.metadata) }.map {
      Candidate(key: $0.key, metadata: $0.metadata, data: $0.body.data)
    }
    guard case .use(let index, nil) = Planner(load).plan(request, stored: candidates.map(\.metadata)),
      load.isResult(candidates[index].metadata.response), let length = candidates[index].data?.count,
      length <= load.maximumBodySize
    else { return nil }
    return candidates[index]
  }

  /// What memory knows of the resource, but for what its own time to live has ended.
  private var elementsInMemory: [VariantIndex.Element] {
    guard let elements = memory?.index(of: resource)?.elements else { return [] }
    guard elements.contains(where: { $0.metadata.expiration != nil || isOutOfPlace($0.metadata) }) else { return elements }
    let now = load.clock.now
    return elements.filter {
      !isOutOfPlace($0.metadata) && now < $0.metadata.expiration?.deadline(from: $0.metadata.responseTime) ?? .distantFuture
    }
  }

  /// A part of an answer (206), of which no resource can be made.
  func isOutOfPlace(_ metadata: StoredMetadata) -> Bool {
    metadata.response.status == .partialContent && !load.isExchange
  }

  /// A facet of a candidate in memory.
  func value<Value: Sendable>(of candidate: Candidate, transform: String, as type: Value.Type) -> Value? {
    memory?.value(of: candidate.key.with(transform: transform), for: candidate.metadata, as: type)
  }

  func isInMemory(_ candidate: Candidate) -> Bool { value(of: candidate, transform: "", as: Data.self) != nil }

  /// What is stored of the resource. The disk is left alone when memory has the answer, body and all, that the request selects.
  func candidates(for request: HTTPRequest) async throws(CacheError) -> [Candidate] {
    let known = elementsInMemory.map {
      Candidate(key: CacheKey(resource: resource, variant: $0.variant), metadata: $0.metadata)
    }
    let whole = known.filter(isInMemory)
    guard let disk, Planner(load).selection(by: request, from: whole.map(\.metadata)) == nil else { return whole }
    return try await candidates(on: disk, beside: known)
  }

  /// What the disk has, and memory a later word about.
  @inline(never)
  private func candidates(on disk: any CacheStore, beside known: [Candidate]) async throws(CacheError) -> [Candidate] {
    var merged: [Candidate]
    do throws(CacheError) {
      merged = try await disk.variants(of: resource).filter { !isOutOfPlace($0.metadata) }.map {
        Candidate(key: $0.key, metadata: $0.metadata, data: $0.body.data)
      }
    } catch {
      if error.isCancellation { throw error }
      load.observe(.readFailed(resource: resource, error: error))
      merged = []
    }
    if let demand = load.demand, !demand.wantsBytes { merged = try await withTransforms(merged, on: disk, for: demand) }
    for candidate in known {
      guard let index = merged.firstIndex(where: { $0.key == candidate.key }) else {
        if isInMemory(candidate) { merged.append(candidate) }
        continue
      }
      // A 304, or an answer, may have reached one layer and not the other: the later word that has a body counts.
      guard merged[index].metadata.responseTime < candidate.metadata.responseTime else { continue }
      if merged[index].metadata.revision == candidate.metadata.revision {
        merged[index].metadata = candidate.metadata
      } else if merged[index].isInTransformsAlone, !isInMemory(candidate) {
        merged.remove(at: index)
      } else if isInMemory(candidate) {
        merged[index] = candidate
      }
    }
    return merged
  }

  /// The bytes of a candidate, from memory or else from the disk, which puts them into memory. Nil: they are gone, damaged, or
  /// can't be read.
  ///
  /// - Throws: a cancellation, or that the body is larger than the load takes; neither says anything about the entry.
  func read(_ candidate: Candidate) async throws(CacheError) -> Kept? {
    guard load.target.isMemory else { return try await copy(candidate) }
    if let data = value(of: candidate, transform: "", as: Data.self) { return Kept(data: data, source: .memory) }
    guard let disk else { return nil }
    if !candidate.transforms.isEmpty, let demand = load.demand, demand.isMet(by: candidate.transforms),
      let encoded = try await readTransforms(demand.transforms, of: candidate, in: disk)
    {
      promote(candidate)
      return Kept(data: Data(), source: .disk, isBodyLeft: true, encoded: encoded)
    }
    do throws(CacheError) {
      let data: Data
      let share: MemoryReservation
      if let atHand = candidate.data {
        guard atHand.count <= load.maximumBodySize else { throw load.bodyTooLarge }
        data = atHand
        share = load.budget.share(holding: data.count)
      } else {
        guard let entry = try await disk.entry(for: candidate.key), entry.metadata.revision == candidate.metadata.revision else {
          return nil
        }
        if let length = entry.body.length, length > load.maximumBodySize { throw load.bodyTooLarge }
        share = load.budget.share(holding: 0, LoadPriority(load.priority))
        try await share.begin(announcing: entry.body.length)
        // A file's length is a fact, and it comes at once: it waits for no body that comes slowly.
        if let length = entry.body.length { try await share.grow(to: length, most: length) }
        data = try await entry.body.collect(limit: load.maximumBodySize)
        share.end(at: Int64(data.count))
      }
      promote(data, candidate)
      return Kept(data: data, source: .disk, share: share)
    } catch {
      if error.isCancellation || error.code == .bodyTooLarge { throw error }
      load.observe(.readFailed(resource: resource, error: error))
      return nil
    }
  }
}
