internal import CacheCore
internal import HTTPTypes

/// One exchange with a caller who speaks HTTP: plan, reply with what is stored, or forward.
struct Responder: Sendable {
  let load: ResolvedRequest
  let core: LoadCoordinator
  /// What the cache calls itself; nil: it says nothing of itself.
  let name: String?
  let collapsing: CoalescingWait
  let cache: TieredCache

  init(load: ResolvedRequest, core: LoadCoordinator, name: String?, collapsing: CoalescingWait) {
    self.load = load
    self.core = core
    self.name = name
    self.collapsing = collapsing
    cache = TieredCache(load: load, resource: load.parts.resource)
  }

  /// What goes on behind another's back, with what that has found: a purge since then counts.
  private init(behind other: Responder, load: ResolvedRequest) {
    self.load = load
    core = other.core
    name = nil
    collapsing = CoalescingWait(limit: nil)
    cache = other.cache.seen(by: load)
  }

  func respond(sending body: ResourceBody?) async throws(CacheError) -> CachedResponse {
    let request = load.head
    let arrival = core.collapsing.count
    var candidates = try await cache.candidates(for: request)
    while true {
      if Task.isCancelled { throw .cancelled }
      switch Planner(load).plan(request, stored: candidates.map(\.metadata)) {
      case .use(let index, let revalidation):
        let chosen = candidates[index]
        guard let reply = try await reply(with: chosen) else {
          // Evicted or damaged meanwhile: a miss. Without it there may be another answer, or none.
          candidates.remove(at: index)
          continue
        }
        if let revalidation { revalidate(candidates, revalidation) }
        return finished(reply, status(hitBy: chosen))
      case .fetch(let sent, let fallback, let reason):
        // Without a validator nobody has looked at that yet.
        guard load.policy != .cacheOnly else {
          body?.source.cancel()
          return unanswered(HTTPResponse(status: .gatewayTimeout))
        }
        let forwarding = Forwarding(responder: self, candidates: candidates, fallback: fallback, reason: reason)
        return try await forward(forwarding, sent, body, since: arrival)
      case .answer(let head):
        body?.source.cancel()
        return unanswered(head)
      }
    }
  }

  private func unanswered(_ head: HTTPResponse) -> CachedResponse {
    let status = CacheStatus(name ?? "", madeHere: "not cached, and nobody may be asked")
    return finished(CachedResponse(head: head, body: ResourceBody.none, status: status, source: .memory), status)
  }

  /// What is sent of a stored answer. Nil: its bytes are gone.
  func reply(with candidate: Candidate) async throws(CacheError) -> CachedResponse? {
    let reply = storedReply(with: candidate.metadata)
    guard let content = try await cache.content(of: candidate, reply.content) else { return nil }
    return CachedResponse(
      head: reply.head, body: content.body, status: status(hitBy: candidate), source: content.source)
  }

  func storedReply(with metadata: StoredMetadata) -> StoredReply {
    load.validator?.reply(to: load.head, from: metadata, now: load.clock.now)
      ?? StoredReply(head: metadata.response, content: load.head.method == .head ? .none : .whole)
  }

  func status(hitBy candidate: Candidate) -> CacheStatus {
    CacheStatus(name ?? "", hitFor: candidate.metadata.freshness.freshUntil - load.clock.now)
  }

  /// The answer with what the cache did.
  func finished(_ response: CachedResponse, _ status: CacheStatus) -> CachedResponse {
    var response = response
    response.status = status
    if name != nil { status.append(to: &response.head.headerFields) }
    return response
  }

  /// Asks about an answer that has been shown already, behind its caller's back and for nobody but the cache; one at a time for
  /// each resource.
  private func revalidate(_ candidates: [Candidate], _ sent: HTTPRequest) {
    let background = Responder(
      behind: self,
      load: load.with { parts in
        for name in ConfidentialFields.conditions + [.range] { parts.head.headerFields[name] = nil }
      })
    core.revalidations.begin(RevalidationTable.Subject(cache)) {
      let forwarding = Forwarding(responder: background, candidates: candidates, fallback: nil, reason: .stale)
      do throws(CacheError) {
        let response = try await forwarding.run(sent, nil)
        // A stored body that was confirmed, or an answer that is not kept: nobody wants the bytes.
        guard response.status.isStored else { return response.body.source.cancel() }
        while try await response.body.source.next() != nil {}
      } catch {
        if !error.isCancellation { background.load.observe(.backgroundFailed(url: background.load.address, error: error)) }
      }
    }
  }
}
