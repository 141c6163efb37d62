internal import CacheCore
internal import HTTPTypes

/// One request of an HTTP caller (`respond(to:)`), whose response streams to the caller.
struct ResponseOperation: Sendable {
  let request: ResolvedRequest
  let core: LoadCoordinator
  /// The name of the cache in `Cache-Status`, or `nil` to omit the field.
  let name: String?
  let wait: CoalescingWait
  /// The parts from which the response is combined if that is possible, and whether the origin must confirm them first.
  var combination: (live: LiveParts, requiresValidation: Bool)?

  func run(sending body: ResourceBody?) async throws(CacheError) -> CachedResponse {
    try await run(sending: body, since: core.responseCoalescer.count, fetch)
  }

  private var fetch: Fetch { Fetch(request, LoadPriority(request.priority)) }

  /// - Parameters:
  ///   - body: The content of the request.
  ///   - arrival: The count of the coalescer before the first lookup. It reveals a response that is stored after that lookup.
  ///   - fetch: The request, which has not been looked up.
  ///   - known: The result of an immediately preceding lookup, or `nil` if there was none.
  private func run(
    sending body: ResourceBody?, since arrival: Int, _ fetch: Fetch, _ known: LookupResult? = nil
  ) async throws(CacheError) -> CachedResponse {
    var fetch = fetch
    switch try await fetch.decide(known) {
    case .use(let response, let revalidation):
      if let sent = revalidation { revalidate(sent, fetch) }
      return finished(response)
    case .send(let sent):
      if body == nil, let piece = fetch.firstPiece(of: sent) { return try await open(piece, fetch, sent) }
      return try await forward(fetch, sent, body, since: arrival)
    case .combine(let combination): return try await combine(combination, fetch, since: arrival)
    case .respond(let head):
      body?.source.cancel()
      return generated(head)
    }
  }

  private func generated(_ head: HTTPResponse) -> CachedResponse {
    finished(head, .none, CacheStatus("", generatedLocally: CacheError.onlyCached.reason), source: .memory)
  }

  /// The response to a request that needs the origin although no request may be sent (RFC 9111 §5.2.1.7).
  var generatedTimeout: CachedResponse { generated(HTTPResponse(status: .gatewayTimeout)) }

  /// Runs the operation and informs the observer of its start and its end, or of a hit. The end is that of the body, because a
  /// body may break off. Out of line, because most callers have no observer.
  @inline(never)
  func runObserved(sending body: ResourceBody?) async throws(CacheError) -> CachedResponse {
    let (start, arrival) = (request.clock.uptime, core.responseCoalescer.count)
    let fetch = fetch
    let known = fetch.cache.lookUpWithoutWaiting(request.head)
    let isHit = known?.isHit == true
    if !isHit { request.observe(.started(url: request.observedURL)) }
    do throws(CacheError) {
      var response = try await run(sending: body, since: arrival, fetch, known)
      // The bytes of a hit are in memory.
      guard !isHit else {
        request.observe(
          .hit(url: request.observedURL, source: response.source, duration: request.clock.uptime - start))
        return response
      }
      // The cache generated a 504, so the response has no source.
      let isMade = !response.status.isHit && response.status.forward == nil
      let source = response.status.forwardStatus == 304 ? .revalidated : response.source
      let result: Result<_, CacheError> =
        isMade ? .failure(.onlyCached) : .success((source: source, fallbackReason: response.fallbackReason))
      observeEnd(result, request.clock.uptime - start, after: &response)
      return response
    } catch {
      if isHit { request.observe(.started(url: request.observedURL)) }
      observeEnd(.failure(error), request.clock.uptime - start)
      throw error
    }
  }

  private typealias Ending = Result<(source: ResourceSource, fallbackReason: CacheError?), CacheError>

  private func observeEnd(_ result: Ending, _ duration: Duration) {
    let url = request.observedURL
    switch result {
    case .success(let (source, fallbackReason)):
      request.observe(.finished(url: url, source: source, fallbackReason: fallbackReason, error: nil, duration: duration))
    case .failure(let error):
      let error = error.about(request.address)
      request.observe(.finished(url: url, source: nil, fallbackReason: nil, error: error, duration: duration))
    }
  }

  /// Informs the observer of the end when the body has ended. A body in memory, or none, has ended already.
  private func observeEnd(_ result: Ending, _ duration: Duration, after response: inout CachedResponse) {
    let hasContent = request.head.method != .head && ![204, 304].contains(response.head.status.code)
    guard case .success = result, response.body.data == nil, hasContent else { return observeEnd(result, duration) }
    let source = ObservedBody(response.body) { error in
      // Loads that the observer starts are not a part of a load that reads this body.
      MemoryBudget.$isInsideLoad.withValue(false) { observeEnd(error.map { .failure($0) } ?? result, duration) }
    }
    response.body = ResourceBody(length: response.body.length, source: source)
  }

  /// Runs the same request again after it has waited in vain for another one. It looks into the stores again.
  func again(_ wait: CoalescingWait) async throws(CacheError) -> CachedResponse {
    try await ResponseOperation(request: request, core: core, name: name, wait: wait).run(sending: nil)
  }

  /// Sends the request to the origin, unless the response can be combined from parts.
  func send(_ fetch: Fetch, _ sent: HTTPRequest, _ body: ResourceBody?) async throws(CacheError) -> CachedResponse {
    if let combination {
      // The request that this one waited for may have shown that the origin has another state.
      if combination.live.isCurrent,
        let response = try await combined(combination.live, combination.requiresValidation, fetch)
      {
        return finished(response)
      }
      guard fetch.permitsRequest else { return generatedTimeout }
    }
    return finished(try await fetch.send(sent, body.map { .stream($0) } ?? .none))
  }

  /// Returns the response for the caller, with the handling by the cache.
  func finished(_ response: Exchange) -> CachedResponse {
    var finished = finished(response.head, response.body, response.status, source: response.source)
    finished.fallbackReason = response.fallbackReason?.about(request.address)
    if let received = response.received { finished.metrics = received.response.metrics }
    return finished
  }

  private func finished(
    _ head: HTTPResponse, _ body: ResourceBody, _ status: CacheStatus, source: ResourceSource
  ) -> CachedResponse {
    var (head, status) = (head, status)
    status.cache = name ?? ""
    if name != nil { status.append(to: &head.headerFields) }
    return CachedResponse(head: head, body: body, status: status, source: source)
  }

  /// Revalidates a response that the caller has already received. For each resource, one such request runs at a time.
  private func revalidate(_ sent: HTTPRequest, _ fetch: Fetch) {
    let background = request.with { settings in
      for name in ConfidentialFields.conditions + [.range] { settings.head.headerFields[name] = nil }
      // A failure is reported, because the caller has the stored response already.
      settings.staleFallback = .never
      settings.onInterimResponse = nil
    }
    // Responses that are removed from now on count as removed for the background request too.
    var revalidation = Fetch(background, LoadPriority(background.priority), fetch.cache.seen(by: background))
    (revalidation.candidates, revalidation.reason, revalidation.selectsStored) = (fetch.candidates, .stale, true)
    let key = fetch.cache.revalidationKey
    let host = sent.authority ?? ""
    let name = CacheKey(resource: request.settings.name)
    core.flights.startRevalidation(key, of: name, at: host, id: request.id, LoadPriority(request.priority)) { [revalidation] in
      do throws(CacheError) {
        let response = try await revalidation.send(sent)
        // The caller needs no bytes, so the body is read only if it is stored.
        guard response.status.isStored else { return response.body.source.cancel() }
        while try await response.body.source.next() != nil {}
      } catch {
        if !error.isCancellation { background.observe(.backgroundFailed(url: background.observedURL, error: error)) }
      }
    }
  }
}

/// Waits for the response to an equal request that was sent to the origin (RFC 9111 §4).
extension ResponseOperation {
  private var planner: Planner { Planner(request) }

  /// Sends the request, or waits for the response to an equal one.
  ///
  /// - Parameter arrival: The count of the coalescer when the request arrived.
  func forward(
    _ fetch: Fetch, _ sent: HTTPRequest, _ body: ResourceBody?, since arrival: Int
  ) async throws(CacheError) -> CachedResponse {
    var wait = wait
    guard let limit = wait.left(at: request.clock.uptime), body == nil, fetch.isSatisfiedByFreshResponse else {
      return try await send(fetch, sent, body)
    }
    let key = wait.key(of: request, fetch.candidates)
    let role = core.responseCoalescer.assignRole(
      key, since: arrival, isRepeated: wait.hasRepeatedLookup, mayLead: mayLead(fetch.reason), fetch.cache)
    switch role {
    case .alone: return try await send(fetch, sent, nil)
    case .late(nil): return try await again(wait.repeatingLookup())
    case .late(let coalescedResponse?):
      let next = try await use(fetch, wait, coalescedResponse, isEarly: true) { () throws(CacheError) in
        try await fetch.response(from: coalescedResponse.candidate)
      }
      return try await proceed(next, fetch, sent)
    case .leading(let leader, let mayWaitForLease):
      var leading = fetch
      leading.leader = leader
      if !mayWaitForLease { leading.mayWaitForLease = false }
      return try await send(leading, sent, nil)
    case .following(let pending, let isEarly):
      request.observe(.joined(url: request.observedURL, to: pending.load))
      let next: Next
      do {
        // The body holds its first bytes for this request until then.
        defer { pending.followerSettled() }
        next = try await follow(pending, fetch, sent, wait, within: limit, isEarly: isEarly)
      }
      return try await proceed(next, fetch, sent)
    }
  }

  /// The next step of a request that has waited.
  private enum Next {
    case response(CachedResponse)
    /// The request looks into the stores again.
    case again(CoalescingWait)
    /// The request is sent.
    case send(mayWaitForLease: Bool = true)
  }

  @inline(never)
  private func proceed(
    _ next: Next, _ fetch: Fetch, _ sent: HTTPRequest
  ) async throws(CacheError) -> CachedResponse {
    switch next {
    case .response(let response): return response
    case .again(let wait): return try await again(wait)
    case .send(let mayWaitForLease):
      var fetch = fetch
      if !mayWaitForLease { fetch.mayWaitForLease = false }
      return try await send(fetch, sent, nil)
    }
  }

  /// Waits for the outcome of an equal request, and uses it if this request may.
  @inline(never)
  private func follow(
    _ pending: PendingRequest, _ fetch: Fetch, _ sent: HTTPRequest, _ wait: CoalescingWait,
    within limit: Duration, isEarly: Bool
  ) async throws(CacheError) -> Next {
    let outcome = await pending.outcome(within: limit, by: request.clock)
    if Task.isCancelled { throw .cancelled }
    switch outcome {
    case nil: return .send(mayWaitForLease: false)
    case .abandoned: return .again(wait.again(counts: false))
    case .unshared(let response):
      let stale = try await fetch.staleResponse(
        insteadOf: response, sent: sent, requestTime: request.clock.now, isCollapsed: true)
      return stale.map { .response(finished($0)) } ?? .send()
    case .growing(let candidate, let body):
      var wait = wait
      let left = wait.left(at: request.clock.uptime) ?? .zero
      let coalescedResponse = pending.coalescedResponse(candidate, status: nil)
      return try await use(fetch, wait, coalescedResponse, isEarly: isEarly) {
        await self.response(to: fetch, with: candidate, from: body, left)
      }
    case .stored(let candidate, let status):
      let coalescedResponse = pending.coalescedResponse(candidate, status: status)
      return try await use(fetch, wait, coalescedResponse, isEarly: isEarly) { () throws(CacheError) in
        try await fetch.response(from: candidate)
      }
    }
  }

  /// Responds with the response to another request, if this one may use it.
  ///
  /// - Parameter isEarly: Whether this request arrived before that response did. It then needs no validation of its own.
  @inline(never)
  private func use(
    _ fetch: Fetch, _ wait: CoalescingWait, _ coalescedResponse: PendingRequest.CoalescedResponse, isEarly: Bool,
    _ stored: () async throws(CacheError) -> Exchange?
  ) async throws(CacheError) -> Next {
    let candidate = coalescedResponse.candidate
    // A response that was requested before a purge may be one that the purge removes.
    guard !request.invalidations.mayHaveMatched(fetch.cache.resource, since: coalescedResponse.logPosition),
      isEarly || candidate.metadata.freshness.isFresh(at: request.clock.now)
    else { return .again(wait.again()) }
    // This request learns that only equal requests share a response. Each set of equal requests sends one, all at the same time.
    guard coalescedResponse.isShareable(with: request.head) else {
      return .again(wait.again(knowing: planner.sharingFields(of: candidate.metadata)))
    }
    let plan =
      isEarly
      ? planner.plan(request.head, validatedMeanwhile: candidate.metadata)
      : planner.plan(request.head, stored: [candidate.metadata])
    switch plan {
    case .use:
      guard var response = try await stored() else {
        if Task.isCancelled { throw .cancelled }
        return .again(wait.again())
      }
      response.status = fetch.forwarded(coalescedResponse.status)
      response.status.isCollapsed = true
      response.status.lifetimeLeft = fetch.lifetimeLeft(candidate.metadata)
      return .response(finished(response))
    // Requests that need the same variant share one response.
    case .fetch(_, _, .varyMiss): return .again(wait.again(knowing: planner.sharingFields(of: candidate.metadata)))
    case .fetch, .combine, .respond: return .send()
    }
  }

  /// Returns a response whose body is still arriving, or `nil` if the body can no longer be read.
  private func response(
    to fetch: Fetch, with candidate: Candidate, from body: SharedBody, _ limit: Duration
  ) async -> Exchange? {
    let reply = fetch.reply(from: candidate.metadata)
    let content: ResourceBody
    switch reply.content {
    case .none: content = .none
    case .range: return nil
    case .whole:
      guard let reader = await body.follow(within: limit, by: request.clock) else { return nil }
      content = reader
    }
    return fetch.exchange(
      candidate, reply.head, .init(body: content, source: .network), fetch.hit(candidate.metadata))
  }

  /// Whether other requests may be able to use the response: it is whole or confirms a stored one, and it may be stored.
  private func mayLead(_ reason: ForwardReason) -> Bool {
    let fields = request.head.headerFields
    guard request.head.method == .get, !request.head.hasDirective("no-store") else { return false }
    return reason == .stale || !ConfidentialFields.conditions.contains { fields.contains($0) }
  }
}

/// The state of a request that waits for an equal one: its limits, and the selecting fields that it has learned from earlier
/// responses.
struct CoalescingWait: Sendable {
  /// The total time that the request may wait, or `nil` if it does not wait.
  private let limit: Duration?
  /// The uptime at which the request stops waiting, or `nil` if it has not begun to wait.
  private var end: Duration?
  /// The fields that are known to select a response of the resource, or `nil` if only requests with equal fields share one.
  private var selecting: Set<HTTPField.Name>? = Self.alwaysSelecting
  /// The number of times that the request has started again.
  private var rounds = 0
  /// Whether the request has started again because its lookup was too early, or may have been.
  private(set) var hasRepeatedLookup = false

  /// All requests share one set, because most have no other fields, and many do not read the set.
  private static let alwaysSelecting: Set<HTTPField.Name> = [.authorization]

  init(limit: Duration?) { self.limit = limit.flatMap { $0 > .zero ? $0 : nil } }

  /// Returns the remaining time to wait. Returns `nil` if no time is left, or if the request has waited three times for a
  /// response that it could not use.
  mutating func left(at uptime: Duration) -> Duration? {
    guard let limit, rounds < 3 else { return nil }
    let end = end ?? uptime + limit
    self.end = end
    return end > uptime ? end - uptime : nil
  }

  /// Returns the state of the same request after it has waited.
  ///
  /// - Parameters:
  ///   - fields: The fields that selected a response that the request could not use, or `nil` for all fields.
  ///   - counts: Whether the round counts, because there was a response. A round whose leader left does not count.
  func again(knowing fields: [HTTPField.Name]? = [], counts: Bool = true) -> CoalescingWait {
    var next = self
    next.learn(fields)
    if counts { next.rounds += 1 }
    return next
  }

  /// Returns the state of the same request after a lookup that was too early, or may have been.
  func repeatingLookup() -> CoalescingWait {
    var next = again()
    next.hasRepeatedLookup = true
    return next
  }

  private mutating func learn(_ fields: [HTTPField.Name]?) {
    if let fields { selecting?.formUnion(fields) } else { selecting = nil }
  }

  /// Returns the key that is equal for requests that may share one response. These have the same resource and components, and
  /// equal selecting fields as far as those are known.
  func key(of load: ResolvedRequest, _ candidates: [Candidate]) -> CoalescingKey {
    let known = candidates.reduce(into: self) { $0.learn(Planner(load).sharingFields(of: $1.metadata)) }
    guard let names = known.selecting else { return CoalescingKey(load, sharing: load.head.comparedFields) }
    let fields = load.head.headerFields
    // Most requests have none of these fields.
    return CoalescingKey(
      load, sharing: names.contains(where: fields.contains) ? fields.filter { names.contains($0.name) } : [:])
  }
}
