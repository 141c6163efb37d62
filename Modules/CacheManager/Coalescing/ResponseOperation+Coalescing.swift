internal import CacheCore
internal import HTTPTypes

/// Waiting for the response to an equal request that is on its way to the origin (RFC 9111 §4).
extension ResponseOperation {
  private var planner: Planner { transaction.planner }

  /// Sends the request, or waits for the response to an equal one.
  ///
  /// - Parameter arrival: The count of the coalescer when the request arrived.
  func forward(
    _ originRequest: OriginRequest, _ sent: HTTPRequest, _ body: ResourceBody?, since arrival: Int
  ) async throws(CacheError) -> CachedResponse {
    var wait = wait
    guard let limit = wait.left(at: request.clock.uptime), body == nil, isCoalescible else {
      return try await send(originRequest, sent, body)
    }
    let key = wait.key(of: request, originRequest.candidates)
    switch core.responseCoalescer.place(key, since: arrival, mayLead: mayLead(originRequest.reason), transaction.cache) {
    case .alone: return try await send(originRequest, sent, nil)
    case .late(nil): return try await again(wait.again())
    case .late(let brought?):
      return try await follow(originRequest, sent, wait, brought, isEarly: true) { () throws(CacheError) in
        try await transaction.stored(brought.candidate)
      }
    case .leading(let leader):
      var leading = originRequest
      leading.leader = leader
      return try await send(leading, sent, nil)
    case .following(let pending, let isEarly):
      request.observe(.joined(url: request.address, to: pending.load))
      let outcome = await pending.outcome(within: limit, by: request.clock)
      if Task.isCancelled { throw .cancelled }
      switch outcome {
      case nil: return try await send(originRequest, sent, nil)
      case .abandoned: return try await again(wait.again(counts: false))
      case .unshared(let response):
        let stale = try await originRequest.stale(
          insteadOf: response, sent: sent, requestTime: request.clock.now, isCollapsed: true)
        if let stale { return finished(stale) }
        return try await send(originRequest, sent, nil)
      case .growing(let candidate, let body):
        let left = wait.left(at: request.clock.uptime) ?? .zero
        return try await follow(originRequest, sent, wait, pending.brought(candidate, status: nil), isEarly: isEarly) {
          await self.response(with: candidate, from: body, left)
        }
      case .stored(let candidate, let status):
        let brought = pending.brought(candidate, status: status)
        return try await follow(originRequest, sent, wait, brought, isEarly: isEarly) { () throws(CacheError) in
          try await transaction.stored(candidate)
        }
      }
    }
  }

  /// Responds with what another request has brought, if this one may have it.
  ///
  /// - Parameter isEarly: Whether this request arrived before that response did. Then it needs no validation of its own.
  private func follow(
    _ originRequest: OriginRequest, _ sent: HTTPRequest, _ wait: CoalescingWait, _ brought: PendingRequest.Brought, isEarly: Bool,
    _ stored: () async throws(CacheError) -> TransactionResponse?
  ) async throws(CacheError) -> CachedResponse {
    let candidate = brought.candidate
    // A response that was requested before a purge may be one that the purge removes.
    guard !request.invalidations.mayHaveMet(transaction.cache.resource, since: brought.logPosition),
      isEarly || candidate.metadata.freshness.isFresh(at: request.clock.now)
    else { return try await again(wait.again()) }
    // A request with other cookies may get another response. Requests with equal cookies find each other.
    guard candidate.metadata.wasFresh || brought.cookies == PendingRequest.cookies(of: request.head) else {
      return try await again(wait.again(knowing: planner.sharingFields(of: candidate.metadata)))
    }
    let plan =
      isEarly
      ? planner.plan(request.head, validatedMeanwhile: candidate.metadata)
      : planner.plan(request.head, stored: [candidate.metadata])
    switch plan {
    case .use:
      guard var response = try await stored() else {
        if Task.isCancelled { throw .cancelled }
        return try await again(wait.again())
      }
      response.status = originRequest.forwarded(brought.status)
      response.status.isCollapsed = true
      response.status.lifetimeLeft = originRequest.lifetimeLeft(candidate.metadata)
      return finished(response)
    // Requests that need the same variant find each other.
    case .fetch(_, _, .varyMiss):
      return try await again(wait.again(knowing: planner.sharingFields(of: candidate.metadata)))
    case .fetch, .answer: return try await send(originRequest, sent, nil)
    }
  }

  /// A response whose body is still on its way, or `nil` if it cannot be read any more.
  private func response(
    with candidate: Candidate, from body: SharedBody, _ limit: Duration
  ) async -> TransactionResponse? {
    let reply = transaction.reply(from: candidate.metadata)
    let content: ResourceBody
    switch reply.content {
    case .none: content = .none
    case .range: return nil
    case .whole:
      guard let reader = await body.follow(within: limit, by: request.clock) else { return nil }
      content = reader
    }
    return TransactionResponse(
      head: reply.head, body: content, source: .network, stored: candidate, status: transaction.hit(candidate.metadata))
  }

  /// Whether the response to an equal request would do if it were fresh. A range may be far from what the other reads first.
  private var isCoalescible: Bool {
    guard request.head.method == .get || request.head.method == .head, !request.head.headerFields.contains(.range) else {
      return false
    }
    // Only these fields can make a validator refuse a fresh response.
    let mayBeHeard = request.head.headerFields.contains { Self.limiting.contains($0.name.canonicalName) }
    if request.validator != nil, request.policy == .standard, !mayBeHeard { return true }
    var head = request.head
    for name in ConfidentialFields.credentials { head.headerFields[name] = nil }
    let now = request.clock.now
    var plain = head
    plain.headerFields = [:]
    let fresh = StoredMetadata(
      request: plain, response: HTTPResponse(status: .ok), requestTime: now, responseTime: now,
      revision: Revision(high: 0, low: 0), freshness: Freshness(generatedAt: now, freshUntil: .distantFuture))
    guard case .use = planner.plan(head, stored: [fresh]) else { return false }
    return true
  }

  /// The fields that may refuse a fresh response, in lower case (RFC 9111 §5.2.1, §5.4, §4.3.2).
  private static let limiting = ["cache-control", "pragma", "if-match", "if-unmodified-since"]

  /// Whether the response may be for other requests: it is whole or confirms a stored one, and it may be stored.
  private func mayLead(_ reason: ForwardReason) -> Bool {
    let fields = request.head.headerFields
    guard request.head.method == .get, fields[.cacheControl]?.lowercased().contains("no-store") != true else { return false }
    return reason == .stale || !ConfidentialFields.conditions.contains { fields.contains($0) }
  }
}
