internal import CacheCore
internal import HTTPTypes

/// One HTTP request against the cache and the origin (RFC 9111): look up, plan, use a stored response or send the request, judge,
/// store.
///
/// Loads, loads into files, prefetches and `respond(to:)` all fetch. They differ only in the ``BodyDestination``. This file looks
/// up and plans. `Fetch+Origin.swift` sends the request, and `Fetch+Verdict.swift` carries out the validator's verdict about the
/// response.
struct Fetch: Sendable {
  let request: ResolvedRequest
  /// The redirect that led to this request, or `nil` for the caller's own request.
  let hop: RedirectHop?
  let priority: LoadPriority
  private(set) var cache: TieredCache

  // The results of the plan.
  /// The stored responses from which the plan was made.
  var candidates: [Candidate] = []
  /// The index of the stored response that the validator serves if the origin cannot be reached.
  var fallback: Int?
  var reason = ForwardReason.uriMiss
  /// Whether the request selects a stored response, fresh or stale, which the new one replaces.
  var selectsStored = false
  /// The error of the lookup in the durable store, or of the fleet. `nil` if neither failed. Failed writes are not included.
  var storeFailure: CacheError.Code?

  /// The leader, which passes the outcome on to coalesced requests.
  var leader: CoalescingLeader?
  /// The lease under which the request is sent, or `nil` if it is sent without one.
  var lease: (any RequestLease)?
  /// Whether the request may wait for a lease. It may not if it has already waited for another request of this process.
  var mayWaitForLease = true

  /// - Parameters:
  ///   - request: The load or the request of an HTTP caller.
  ///   - hop: The redirect to follow, or `nil` for the caller's own request.
  ///   - priority: The priority, which waiters may raise.
  ///   - cache: The view of the stores from an earlier lookup, or `nil` for a new one.
  init(_ request: ResolvedRequest, at hop: RedirectHop? = nil, _ priority: LoadPriority, _ cache: TieredCache? = nil) {
    self.request = request
    self.hop = hop
    self.priority = priority
    let resource = hop.map { request.resource(ofTarget: $0.request) } ?? request.settings.resource
    // The load may differ from the one that looked up: it may be a part of another load.
    self.cache = cache?.seen(by: request) ?? TieredCache(request, resource: resource)
  }

  /// The next step after the lookup.
  enum Decision {
    /// A stored response is used. If there is a request, the response is also revalidated.
    case use(Exchange, thenRevalidate: HTTPRequest?)
    /// The request is sent to the origin with this head.
    case send(HTTPRequest)
    /// Stored parts are combined with parts from the origin.
    case combine(PartCombination)
    /// The cache generates the response: a 504, because `.cacheOnly` or the request's `only-if-cached` forbids a request.
    case respond(HTTPResponse)
  }

  /// The head of the request: the caller's, or that of a redirect.
  var head: HTTPRequest { hop?.request ?? request.settings.head }
  /// The URL of this request in events.
  var observedURL: LoadURL { hop.map { LoadURL($0.url) } ?? request.observedURL }

  var planner: Planner { Planner(request) }
  var stored: [StoredMetadata] { candidates.map(\.metadata) }

  /// Looks into the stores and decides.
  ///
  /// - Parameter known: The result of an immediately preceding lookup, or `nil` if there was none.
  ///
  /// Inlined, because most loads need no asynchronous call, which allocates memory.
  @inline(__always)
  mutating func decide(_ known: LookupResult? = nil) async throws(CacheError) -> Decision {
    if let known, let decision = decideWithoutWaiting(known) { return decision }
    return try await decideAfterReading(known)
  }

  @inline(never)
  private mutating func decideAfterReading(_ known: LookupResult?) async throws(CacheError) -> Decision {
    var found: LookupResult
    if let known { found = known } else { found = try await cache.lookUp(head) }
    while true {
      if Task.isCancelled { throw .cancelled }
      if let decision = decideWithoutWaiting(found) { return decision }
      // Any other plan has led to a decision, unless the task was cancelled meanwhile, which the next round finds.
      guard case .use(let index, let revalidation) = found.plan else { continue }
      // Without this check, a load would take a part for the whole if its validator did.
      guard request.destination.isStream || found.candidates[index].metadata.response.status != .partialContent else {
        found.candidates.remove(at: index)
        found.plan = planner.plan(head, stored: found.candidates.map(\.metadata))
        continue
      }
      if revalidation != nil, case .file(let file) = request.destination { await file.setPartAside() }
      if let response = try await response(from: found.candidates[index]) {
        (candidates, fallback, reason, selectsStored) = (found.candidates, index, .stale, true)
        return .use(response, thenRevalidate: revalidation)
      }
      // The response was evicted, or it is damaged. Another stored response may match.
      found.candidates.remove(at: index)
      found.plan = planner.plan(head, stored: found.candidates.map(\.metadata))
    }
  }

  /// Decides after a lookup. Returns `nil` if the plan uses a stored response, whose body may have to be read, or if the task is
  /// cancelled.
  @inline(never)
  mutating func decideWithoutWaiting(_ found: LookupResult) -> Decision? {
    if Task.isCancelled { return nil }
    if request.role == .mirror { return decideForMirror(found) }
    switch found.plan {
    case .use: return nil
    case .respond(let response): return .respond(response)
    case .combine(let combination):
      (candidates, fallback, reason, storeFailure) = (found.candidates, nil, .partial, found.storeFailure)
      // A reader can be slow, and nothing counts these bytes. They are read again when they are needed.
      for index in candidates.indices { (candidates[index].data, candidates[index].record) = (nil, nil) }
      return .combine(combination)
    case .fetch(let sent, let fallback, let reason):
      // Without a validator, the plan ignores this policy.
      guard request.policy != .cacheOnly else { return .respond(HTTPResponse(status: .gatewayTimeout)) }
      (candidates, self.fallback, self.reason) = (found.candidates, fallback, reason)
      storeFailure = found.storeFailure
      selectsStored = !candidates.isEmpty && planner.selects(found.plan, for: head)
      return .send(sent)
    }
  }

  /// Plans the request to a mirror. The stored responses do not apply to it, because they come from another server.
  @inline(never)
  private mutating func decideForMirror(_ found: LookupResult) -> Decision {
    guard case .fetch(let sent, _, let reason) = planner.plan(head, stored: []) else {
      return .respond(HTTPResponse(status: .gatewayTimeout))
    }
    (candidates, self.reason, storeFailure) = (found.candidates, reason, found.storeFailure)
    selectsStored = planner.selection(by: head, from: stored) != nil
    return .send(sent)
  }

  /// Looks into all layers of the stores again and decides, because another process may have stored a response. Responses that
  /// were removed before now are not affected by the removal any more.
  mutating func decideAgain() async throws(CacheError) -> Decision {
    cache = TieredCache(request, resource: cache.resource)
    return try await decide(try await cache.lookUp(head, readsAllLayers: true))
  }

  /// Returns the stored response with its body at the destination. Returns `nil` if the body is missing or cannot be read.
  func response(from candidate: Candidate) async throws(CacheError) -> Exchange? {
    let reply = reply(from: candidate.metadata)
    guard let content = try await cache.content(of: candidate, priority, reply.content) else { return nil }
    cache.promote(content, candidate)
    return exchange(candidate, reply.head, content, hit(candidate.metadata))
  }

  /// Returns the part of a stored response for the caller. A load gets the whole response.
  func reply(from metadata: StoredMetadata) -> StoredReply {
    guard request.destination.isStream else { return StoredReply(head: metadata.response, content: .whole) }
    return request.validator?.reply(to: head, from: metadata, now: request.clock.now)
      ?? StoredReply(head: metadata.response, content: head.method == .head ? .none : .whole)
  }

  func exchange(
    _ candidate: Candidate, _ head: HTTPResponse, _ content: TieredCache.Content, _ status: CacheStatus
  ) -> Exchange {
    Exchange(
      .init(
        request: request, hop: hop, head: head, body: content.body, source: content.source, status: status, key: candidate.key,
        metadata: candidate.metadata, isStored: true, isBodyLeft: content.isBodyLeft, encoded: content.encoded,
        reservation: content.reservation))
  }

  func hit(_ metadata: StoredMetadata) -> CacheStatus {
    CacheStatus("", hitFor: lifetimeLeft(metadata))
  }

  /// Returns a stored response after the origin has responded. Bytes from before a removal are not used any more.
  func candidate(_ index: Int) -> Candidate {
    var candidate = candidates[index]
    if cache.isBehindRemovals { candidate.data = nil }
    return candidate
  }
}

/// Requests that may use the response to another request.
extension Fetch {
  /// Whether a fresh response to an equal request would satisfy this one. A range may be far from the bytes that the other reader
  /// reads first.
  var isSatisfiedByFreshResponse: Bool {
    (head.method == .get || head.method == .head) && !head.headerFields.contains(.range) && acceptsFreshResponse
  }

  /// Whether the fields and the policy of the request accept a fresh response.
  var acceptsFreshResponse: Bool {
    // Only these fields can make a validator reject a fresh response.
    let mayBeHeard = head.headerFields.contains { Self.limiting.contains($0.name.canonicalName) }
    if request.validator != nil, request.policy == .standard, !mayBeHeard { return true }
    var plainHead = head
    for name in ConfidentialFields.credentials + [.range] { plainHead.headerFields[name] = nil }
    let now = request.clock.now
    var plain = plainHead
    plain.headerFields = [:]
    let fresh = StoredMetadata(
      request: plain, response: HTTPResponse(status: .ok), requestTime: now, responseTime: now,
      revision: Revision(high: 0, low: 0), freshness: Freshness(generatedAt: now, freshUntil: .distantFuture))
    guard case .use = planner.plan(plainHead, stored: [fresh]) else { return false }
    return true
  }

  /// The fields that can reject a fresh response, in lower case (RFC 9111 §5.2.1, §5.4, §4.3.2).
  private static let limiting = ["cache-control", "pragma", "if-match", "if-unmodified-since"]
}

/// Makes decisions with the request's validator. Without one, every stored response that the stores return may be used, because
/// they leave out expired entries.
struct Planner {
  let request: ResolvedRequest
  let policy: LoadPolicy

  init(_ request: ResolvedRequest, policy: LoadPolicy? = nil) {
    self.request = request
    self.policy = policy ?? request.policy
  }

  func plan(_ head: HTTPRequest, stored: [StoredMetadata]) -> ValidationPlan {
    let now = request.clock.now
    guard request.fleetMember?.isCurrent == false else { return plan(head, stored: stored, at: now) }
    return plan(head, stored: untrusted(stored, at: now), at: now)
  }

  /// Returns the metadata of responses that other processes may have purged. They must be revalidated before their use.
  @inline(never)
  private func untrusted(_ stored: [StoredMetadata], at now: Timestamp) -> [StoredMetadata] {
    // Without a validator, a response cannot be revalidated.
    guard request.validator != nil else { return policy == .cacheFirst || policy == .cacheOnly ? stored : [] }
    return stored.map {
      var metadata = $0
      metadata.freshness.requiresRevalidation = true
      metadata.freshness.staleWhileRevalidateUntil = nil
      return metadata
    }
  }

  /// Decides about a response that the origin sent or confirmed after the request had arrived. The request needs no validation of
  /// its own (RFC 9111 §4). Its other requirements apply: selecting fields, age and directives.
  func plan(_ head: HTTPRequest, validatedMeanwhile metadata: StoredMetadata) -> ValidationPlan {
    let now = request.clock.now
    var validated = metadata
    validated.freshness.requiresRevalidation = false
    validated.freshness.freshUntil = max(metadata.freshness.freshUntil, now + .nanoseconds(1))
    return plan(head, stored: [validated], at: now)
  }

  private func plan(_ head: HTTPRequest, stored: [StoredMetadata], at now: Timestamp) -> ValidationPlan {
    if let validator = request.validator {
      // The result of a load is a whole body. Only the origin can respond to its caller's conditions, ranges and HEAD requests.
      let stored = request.destination.isStream || head.wantsWholeBody ? stored : []
      return validator.plan(head, policy: policy, stored: stored, now: now)
    }
    guard head.method == .get, let newest = stored.indices.max(by: { stored[$0].responseTime < stored[$1].responseTime })
    else {
      return .fetch(head, fallback: nil, reason: stored.isEmpty ? .uriMiss : .method)
    }
    switch policy {
    case .standard, .cacheFirst, .cacheOnly, .memoryElseReload: return .use(newest, thenRevalidate: nil)
    case .staleWhileRevalidate: return .use(newest, thenRevalidate: head)
    case .revalidate(let floor, _):
      if let floor, now - stored[newest].responseTime < floor { return .use(newest, thenRevalidate: nil) }
      return .fetch(head, fallback: newest, reason: .request)
    case .reload: return .fetch(head, fallback: nil, reason: .request)
    }
  }

  /// Whether a plan concerns a stored response that the request selects, fresh or stale.
  func selects(_ plan: ValidationPlan, for head: HTTPRequest) -> Bool {
    switch plan {
    case .use: true
    case .fetch(_, _, .stale): true
    // The policy or the caller's own precondition causes these requests, and not a stored response.
    case .fetch(_, _, .request):
      policy != .reload && !head.headerFields.contains(.ifMatch) && !head.headerFields.contains(.ifUnmodifiedSince)
    case .fetch, .combine, .respond: false
    }
  }

  /// Returns the request fields in which requests must be equal to share one response. Returns `nil` for all fields.
  ///
  /// A response that was fresh when it arrived may be reused for every request with equal selecting fields (RFC 9111 §4.1).
  /// Without a validator, no field selects. Any other response, such as one with `no-cache` or without a lifetime, may be reused
  /// for no other request (§5.2.2.4). Only equal requests share it, because the origin cannot distinguish them.
  func sharingFields(of metadata: StoredMetadata) -> [HTTPField.Name]? {
    metadata.wasFresh ? request.validator?.selectingFields(of: metadata) ?? [] : nil
  }

  /// Returns the index of the stored response that the request selects, fresh or stale.
  func selection(by head: HTTPRequest, from stored: [StoredMetadata]) -> Int? {
    guard !stored.isEmpty else { return nil }
    guard case .use(let index, _) = Planner(request, policy: .cacheOnly).plan(head, stored: stored) else { return nil }
    return index
  }

  func judge(
    _ result: Result<HTTPResponse, CacheError>, to head: HTTPRequest, sent: HTTPRequest, fallback: Int?,
    stored: [StoredMetadata], requestTime: Timestamp, now: Timestamp
  ) -> ValidationVerdict {
    let revision = Revision.random()
    if let validator = request.validator {
      return validator.judge(
        result, to: head, sent: sent, fallback: fallback, stored: stored, requestTime: requestTime, now: now,
        revision: revision)
    }
    switch result {
    case .failure(let error):
      guard let fallback, error.isUnreachable else { return .pass(.none, shareable: true) }
      return .serveStale(fallback)
    case .success(let response):
      guard head.method == .get, request.acceptedStatuses.contains(response.status.code), response.status.code != 206 else {
        return .pass(.none, shareable: true)
      }
      var plain = head
      plain.headerFields = [:]
      let metadata = StoredMetadata(
        request: plain, response: response, requestTime: requestTime, responseTime: now, revision: revision,
        freshness: .unvalidated(at: now))
      return .store(variant: "", metadata, .none)
    }
  }
}

extension HTTPRequest {
  fileprivate var wantsWholeBody: Bool {
    method != .head
      && !headerFields.contains { field in
        [.ifMatch, .ifNoneMatch, .ifModifiedSince, .ifUnmodifiedSince, .ifRange, .range].contains(field.name)
      }
  }
}

extension StoredMetadata {
  /// Whether the response was fresh when it arrived.
  var wasFresh: Bool { freshness.isFresh(at: responseTime) }
}
