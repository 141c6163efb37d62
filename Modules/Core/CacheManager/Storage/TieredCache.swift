internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// A stored response that may satisfy a request.
struct Candidate: Sendable {
  var key: CacheKey
  var metadata: StoredMetadata
  /// The body, if the lookup found it in memory, or if the durable store had it in memory.
  var data: Data? = nil
  /// The layer that ``data`` came from.
  var source = ResourceSource.disk
  /// The stored transforms that a load has requested, with their lengths in bytes.
  var transforms: [String: Int64?] = [:]
  /// Whether only transforms are stored, and not the original.
  var isInTransformsAlone = false
  /// The record in memory that the lookup found, or `nil` if it found the response elsewhere.
  var record: ResponseRecord? = nil
}

extension Candidate {
  /// Creates the candidate of a response whose metadata is in memory.
  init(_ record: ResponseRecord, of resource: String) {
    self.init(
      key: CacheKey(resource: resource, variant: record.variant), metadata: record.metadata, source: .memory, record: record)
  }
}

/// The stored responses of a resource, and the plan for a request that was made from them.
struct LookupResult: Sendable {
  var candidates: [Candidate]
  var plan: ValidationPlan
  /// The error of the durable store, if it could not be read.
  var storeFailure: CacheError.Code? = nil

  /// Whether a response with its body is used without revalidation.
  var isHit: Bool {
    guard case .use(let index, nil) = plan else { return false }
    return candidates[index].data != nil
  }
}

/// The stores from the view of one request and one resource: memory in front, the durable store behind it.
///
/// A layer that fails is reported and treated as a miss. It never fails a request.
struct TieredCache: Sendable {
  let request: ResolvedRequest
  let resource: String
  /// The position of the ``InvalidationLog`` when the request began its lookup.
  let logPosition: Int
  /// The position of the ``CommitOrder`` when the request began its lookup.
  private let commitPosition: Int

  init(_ request: ResolvedRequest, resource: String) {
    self.init(request, resource: resource, request.invalidations.current, request.commitOrder.position)
  }

  private init(_ request: ResolvedRequest, resource: String, _ logPosition: Int, _ commitPosition: Int) {
    (self.request, self.resource) = (request, resource)
    (self.logPosition, self.commitPosition) = (logPosition, commitPosition)
  }

  /// Whether a response of the resource may have been committed to a durable store since the request began its lookup.
  var isBehindCommits: Bool { request.commitOrder.mayHaveCommitted(resource, since: commitPosition) }

  /// Returns the cache for another request that takes over the lookup of this one. Responses that were removed since then count
  /// as removed for both.
  func seen(by request: ResolvedRequest) -> TieredCache {
    TieredCache(request, resource: resource, logPosition, commitPosition)
  }

  /// Returns the cache of another resource, for the same request.
  func forResource(_ resource: String) -> TieredCache { TieredCache(request, resource: resource, logPosition, commitPosition) }

  /// Returns the cache for a response that is the resource's new state. Responses that were requested before are outdated (RFC
  /// 9111 §4.4).
  func invalidatingEarlierRequests() -> TieredCache {
    request.invalidations.advance(removing: resource)
    return TieredCache(request, resource: resource)
  }

  /// The stores that the request may read.
  private var readableMemory: MemoryTier? { request.reads.contains(.memory) ? request.memory.map(MemoryTier.init) : nil }
  var readableDisk: (any CacheStore)? { request.reads.contains(.disk) ? request.store : nil }

  /// The key of a revalidation of this resource in these stores.
  var revalidationKey: FlightKey {
    .revalidation(
      CacheKey(resource: resource), stores: [request.memory?.id, request.store?.id], limits: request.environment.storeLimits)
  }

  // MARK: Looking up

  /// Looks up the resource. The durable store is not read if memory has the response that the request selects, with its body.
  ///
  /// - Parameter readsAllLayers: Whether the durable store must look for a later response of another process.
  func lookUp(_ head: HTTPRequest, readsAllLayers: Bool = false) async throws(CacheError) -> LookupResult {
    let known = responsesInMemory()
    if !readsAllLayers, let result = result(of: known, head) { return result }
    guard let disk = readableDisk else { return LookupResult(candidates: [], plan: plan(head, [])) }
    var failure: CacheError.Code?
    let candidates = try await candidates(on: disk, readsAllLayers: readsAllLayers, beside: known, &failure)
    return result(candidates, plan(head, candidates), head, failure)
  }

  /// Looks up the resource in memory, and in a durable store that can respond without waiting. Returns `nil` if the lookup must
  /// wait.
  func lookUpWithoutWaiting(_ head: HTTPRequest) -> LookupResult? {
    let known = responsesInMemory()
    if let result = result(of: known, head) { return result }
    guard known.isEmpty, !Task.isCancelled, let stored = readableDisk?.variantsWithoutWaiting(of: resource) else { return nil }
    let candidates = stored.filter { !isUnusable($0.metadata) }.map {
      Candidate(key: $0.key, metadata: $0.metadata, data: $0.body.data)
    }
    return result(candidates, plan(head, candidates), head)
  }

  /// Returns the response in memory that may be used now. Its body need not be in memory, because a value made from it may be.
  ///
  /// - Parameter allowsStale: Whether to also return a response that must be revalidated in the background.
  func hit(_ head: HTTPRequest, allowsStale: Bool = false) -> Candidate? {
    let records = recordsInMemory
    guard !records.isEmpty,
      case .use(let index, let revalidation) = Planner(request).plan(head, stored: records.map(\.metadata)),
      allowsStale || revalidation == nil,
      request.isResult(records[index].response)
    else { return nil }
    return Candidate(records[index], of: resource)
  }

  /// Returns the response of a lookup that may be used now, with its body, and promotes it. Returns `nil` if there is none.
  func immediateHit(in found: LookupResult) -> Candidate? {
    guard case .use(let index, nil) = found.plan, request.isResult(found.candidates[index].metadata.response) else { return nil }
    let candidate = found.candidates[index]
    guard let data = candidate.data else { return nil }
    guard candidate.source == .disk else { return candidate }
    guard data.count <= request.maximumBodySize else { return nil }
    promote(Content(body: .none, source: .disk, data: data), candidate)
    return candidate
  }

  private func plan(_ head: HTTPRequest, _ candidates: [Candidate]) -> ValidationPlan {
    Planner(request).plan(head, stored: candidates.map(\.metadata))
  }

  /// Returns the result from memory alone, or `nil` if the durable store must be read.
  private func result(of known: [Candidate], _ head: HTTPRequest) -> LookupResult? {
    let whole = known.filter { $0.data != nil }
    if whole.isEmpty, readableDisk != nil { return nil }
    let plan = plan(head, whole)
    guard readableDisk == nil || Planner(request).selects(plan, for: head) else { return nil }
    return LookupResult(candidates: whole, plan: plan)
  }

  /// Returns the result of a lookup in the durable store. If the load must wait before it sends its request, the result has no
  /// bodies. Nothing counts them, so thousands of waiting loads must not hold them. They are read again when they are needed.
  private func result(
    _ candidates: [Candidate], _ plan: ValidationPlan, _ head: HTTPRequest, _ failure: CacheError.Code? = nil
  ) -> LookupResult {
    var result = LookupResult(candidates: candidates, plan: plan, storeFailure: failure)
    guard !candidates.isEmpty, case .fetch(let sent, _, _) = plan, !request.destination.isStream, !request.isNested,
      request.budget.mustWait(toStart: sent)
    else { return result }
    for index in candidates.indices where candidates[index].source == .disk { result.candidates[index].data = nil }
    return result
  }

  func responsesInMemory() -> [Candidate] {
    recordsInMemory.map { record in
      var candidate = Candidate(record, of: resource)
      candidate.data = value(of: candidate, transform: "", as: Data.self)
      return candidate
    }
  }

  /// The variants that memory lists, except those whose time to live has ended.
  private var recordsInMemory: [ResponseRecord] {
    guard let records = readableMemory?.index(of: resource)?.records else { return [] }
    guard records.contains(where: { $0.metadata.expiration != nil || isUnusable($0.metadata) }) else { return records }
    let now = request.clock.now
    return records.filter {
      !isUnusable($0.metadata) && now < $0.metadata.expiration?.deadline(from: $0.metadata.responseTime) ?? .distantFuture
    }
  }

  /// Whether the request cannot use a stored response, whatever its validator decides. A load can use a part (206) only if its
  /// validator combines parts.
  ///
  /// A response that was stored without a validator may be one that its fields forbid to store, or may belong to one user. A
  /// request without a validator cannot compare credentials.
  func isUnusable(_ metadata: StoredMetadata) -> Bool {
    if metadata.response.status == .partialContent, !request.destination.isStream, request.validator?.combinesParts != true {
      return true
    }
    let (freshness, fields) = (metadata.freshness, metadata.request.headerFields)
    guard request.validator == nil else { return freshness.isUnvalidated }
    return fields.contains(.authorization) || fields.contains(.cookie)
      || (freshness.isUnvalidated && freshness.requiresRevalidation)
  }

  /// Returns the value of a candidate in memory, in one transform. The empty transform is the body.
  func value<Value: Sendable>(of candidate: Candidate, transform: String, as type: Value.Type) -> Value? {
    readableMemory?.value(of: candidate.key.with(transform: transform), for: candidate.metadata, candidate.record, as: type)
  }

  func isInMemory(_ candidate: Candidate) -> Bool { value(of: candidate, transform: "", as: Data.self) != nil }

  /// Returns the entries in the durable store. A store that bounds the time of its lookups needs no deadline.
  func variants(on disk: any CacheStore, readsAllLayers: Bool = false) async throws(CacheError) -> [StoredEntry] {
    if !readsAllLayers, disk.boundsLookupTime { return try await disk.variants(of: resource) }
    return try await read { [resource] () throws(CacheError) in
      readsAllLayers ? try await disk.latestVariants(of: resource) : try await disk.variants(of: resource)
    }
  }

  /// Returns the responses in the durable store, with newer metadata from memory.
  @inline(never)
  private func candidates(
    on disk: any CacheStore, readsAllLayers: Bool, beside known: [Candidate], _ failure: inout CacheError.Code?
  ) async throws(CacheError) -> [Candidate] {
    var merged: [Candidate]
    do throws(CacheError) {
      let stored = try await variants(on: disk, readsAllLayers: readsAllLayers)
      merged = stored.filter { !isUnusable($0.metadata) }.map {
        Candidate(key: $0.key, metadata: $0.metadata, data: $0.body.data)
      }
    } catch {
      if error.isCancellation { throw error }
      request.observe(.readFailed(resource: resource, error: error))
      failure = error.code
      merged = []
    }
    if let representation = request.representation, !representation.wantsBytes {
      merged = try await withTransforms(merged, on: disk, for: representation, &failure)
    }
    for candidate in known {
      let isWhole = candidate.data != nil
      guard let index = merged.firstIndex(where: { $0.key == candidate.key }) else {
        if isWhole { merged.append(candidate) }
        continue
      }
      // A 304 or a response may have reached only one layer. The later entry that has a body is used.
      guard merged[index].metadata.responseTime < candidate.metadata.responseTime else { continue }
      if merged[index].metadata.revision == candidate.metadata.revision {
        merged[index].metadata = candidate.metadata
      } else if merged[index].isInTransformsAlone, !isWhole {
        merged.remove(at: index)
      } else if isWhole {
        merged[index] = candidate
      }
    }
    return merged
  }
}
