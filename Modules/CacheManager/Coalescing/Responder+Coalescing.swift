internal import CacheCore
internal import HTTPTypes

/// Requests that can't be answered with what is stored, and are answered with what an equal one brings that is on its way (RFC
/// 9111 §4).
extension Responder {
  /// Sends the request, or waits for the answer to another.
  ///
  /// - Parameter arrival: the count of the table when the request arrived.
  func forward(
    _ forwarding: Forwarding, _ sent: HTTPRequest, _ body: ResourceBody?, since arrival: Int
  ) async throws(CacheError) -> CachedResponse {
    var collapsing = collapsing
    guard let limit = collapsing.left(at: load.clock.uptime), body == nil, isCollapsible else {
      return try await forwarding.run(sent, body)
    }
    let key = collapsing.key(of: load, forwarding.candidates)
    switch core.collapsing.place(key, since: arrival, mayLead: mayLead(forwarding.reason), cache) {
    case .alone: return try await forwarding.run(sent, nil)
    case .late(nil): return try await again(collapsing.again())
    case .late(let brought?):
      return try await follow(forwarding, sent, collapsing, brought, isEarly: true) { () throws(CacheError) in
        try await self.reply(with: brought.candidate)
      }
    case .leading(let leader):
      var leading = forwarding
      leading.leader = leader
      return try await leading.run(sent, nil)
    case .following(let request, let isEarly):
      load.observe(.joined(url: load.address))
      let outcome = await request.outcome(within: limit, by: load.clock)
      if Task.isCancelled { throw .cancelled }
      switch outcome {
      case nil: return try await forwarding.run(sent, nil)
      case .abandoned: return try await again(collapsing.again(counts: false))
      case .unshared(let answer):
        if let reply = try await forwarding.standIn(for: answer, sent) { return reply }
        return try await forwarding.run(sent, nil)
      case .growing(let candidate, let body):
        let left = collapsing.left(at: load.clock.uptime) ?? .zero
        return try await follow(forwarding, sent, collapsing, request.brought(candidate, status: nil), isEarly: isEarly) {
          await self.reply(with: candidate, from: body, left)
        }
      case .stored(let candidate, let status):
        let brought = request.brought(candidate, status: status)
        return try await follow(forwarding, sent, collapsing, brought, isEarly: isEarly) { () throws(CacheError) in
          try await self.reply(with: candidate)
        }
      }
    }
  }

  /// Answers with what another's request has brought, where this one may have it.
  ///
  /// - Parameter isEarly: whether this request arrived before that response did. Then it needs no validation of its own.
  private func follow(
    _ forwarding: Forwarding, _ sent: HTTPRequest, _ collapsing: CoalescingWait, _ brought: PendingRequest.Brought, isEarly: Bool,
    _ reply: () async throws(CacheError) -> CachedResponse?
  ) async throws(CacheError) -> CachedResponse {
    let (candidate, status) = (brought.candidate, brought.status)
    // A response that was asked for before a purge may be one that the purge is about.
    guard !load.invalidations.mayHaveMet(cache.resource, since: brought.logPosition),
      isEarly || candidate.metadata.freshness.isFresh(at: load.clock.now)
    else { return try await again(collapsing.again()) }
    let planner = Planner(load)
    // A request with other cookies may get another response. Requests with equal cookies find each other.
    guard candidate.metadata.wasFresh || brought.cookies == PendingRequest.cookies(of: load.head) else {
      return try await again(collapsing.again(knowing: planner.sharingFields(of: candidate.metadata)))
    }
    let plan =
      isEarly
      ? planner.plan(load.head, validatedMeanwhile: candidate.metadata) : planner.plan(load.head, stored: [candidate.metadata])
    switch plan {
    case .use:
      guard let reply = try await reply() else {
        if Task.isCancelled { throw .cancelled }
        return try await again(collapsing.again())
      }
      return finished(reply, forwarding.collapsed(with: candidate.metadata, status: status))
    // Who needs the same variant finds each other.
    case .fetch(_, _, .varyMiss):
      return try await again(collapsing.again(knowing: planner.sharingFields(of: candidate.metadata)))
    case .fetch, .answer: return try await forwarding.run(sent, nil)
    }
  }

  /// Looks again into the stores, and for others.
  private func again(_ collapsing: CoalescingWait) async throws(CacheError) -> CachedResponse {
    try await Responder(load: load, core: core, name: name, collapsing: collapsing).respond(sending: nil)
  }

  /// What is sent of an answer that is still on its way. Nil: it can't be read any more.
  private func reply(with candidate: Candidate, from body: SharedBody, _ limit: Duration) async -> CachedResponse? {
    let reply = storedReply(with: candidate.metadata)
    let content: ResourceBody
    switch reply.content {
    case .none: content = .none
    case .range: return nil
    case .whole:
      guard let reader = await body.follow(within: limit, by: load.clock) else { return nil }
      content = reader
    }
    return CachedResponse(head: reply.head, body: content, status: status(hitBy: candidate), source: .network)
  }

  /// Whether another's answer would do, were it fresh. A range may be far from what another reads first: it asks for itself.
  private var isCollapsible: Bool {
    guard load.head.method == .get || load.head.method == .head, !load.head.headerFields.contains(.range) else { return false }
    // Only these are heard by who decides about a fresh answer; what somebody else hears is looked at when there is one.
    let mayBeHeard = load.head.headerFields.contains { Self.limiting.contains($0.name.canonicalName) }
    if load.validator != nil, load.policy == .standard, !mayBeHeard { return true }
    var request = load.head
    for name in ConfidentialFields.credentials { request.headerFields[name] = nil }
    let now = load.clock.now
    var plain = request
    plain.headerFields = [:]
    let fresh = StoredMetadata(
      request: plain, response: HTTPResponse(status: .ok), requestTime: now, responseTime: now,
      revision: Revision(high: 0, low: 0), freshness: Freshness(generatedAt: now, freshUntil: .distantFuture))
    guard case .use = Planner(load).plan(request, stored: [fresh]) else { return false }
    return true
  }

  /// Fields for whose sake a fresh answer may be refused, in lower case (RFC 9111 §5.2.1, §5.4, §4.3.2).
  private static let limiting = ["cache-control", "pragma", "if-match", "if-unmodified-since"]

  /// Whether what the request brings can be for others: it asks for the whole, or about what is stored, and may be stored.
  private func mayLead(_ reason: ForwardReason) -> Bool {
    let fields = load.head.headerFields
    guard load.head.method == .get, fields[.cacheControl]?.lowercased().contains("no-store") != true else { return false }
    return reason == .stale || !ConfidentialFields.conditions.contains { fields.contains($0) }
  }
}
