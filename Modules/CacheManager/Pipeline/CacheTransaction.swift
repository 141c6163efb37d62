internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// One HTTP request against the cache and the origin (RFC 9111): look up, plan, use or ask, judge, store.
///
/// Loads, loads into files, prefetches and `respond(to:)` all run transactions. They differ in the ``BodyDestination`` only.
struct CacheTransaction: Sendable {
  let request: ResolvedRequest
  /// The head of this transaction: the caller's, or that of a redirect.
  let head: HTTPRequest
  /// The URL that a redirect led to, or `nil` for the caller's.
  let redirectedURL: URL?
  let priority: LoadPriority
  let cache: TieredCache

  init(
    _ request: ResolvedRequest, head: HTTPRequest, redirectedURL: URL? = nil, priority: LoadPriority, cache: TieredCache
  ) {
    self.request = request
    self.head = head
    self.redirectedURL = redirectedURL
    self.priority = priority
    self.cache = cache
  }

  /// The way to a response, after the stores were looked into.
  enum Decision {
    /// A stored response answers. The origin is to be asked about it too if there is a request for that.
    case stored(TransactionResponse, thenRevalidate: (HTTPRequest, OriginRequest)?)
    /// The origin is to be asked with this head.
    case askOrigin(HTTPRequest, OriginRequest)
    /// The cache makes the response itself: a 504 if the origin may not be asked.
    case generated(HTTPResponse)
  }

  var address: String { redirectedURL?.address ?? request.address }

  var planner: Planner { Planner(request) }

  /// Looks into the stores and decides.
  ///
  /// - Parameter known: The result of a look-up that was just made, or `nil` if there was none.
  func decide(_ known: LookupResult? = nil) async throws(CacheError) -> Decision {
    var found: LookupResult
    if let known { found = known } else { found = try await cache.lookUp(head) }
    if request.role == .mirror { return try mirrored(found.candidates) }
    while true {
      if Task.isCancelled { throw .cancelled }
      switch found.plan {
      case .use(let index, let revalidation):
        let candidate = found.candidates[index]
        guard let response = try await stored(candidate) else {
          // Evicted or damaged meanwhile. Without it there may be another response, or none.
          found.candidates.remove(at: index)
          found.plan = planner.plan(head, stored: found.candidates.map(\.metadata))
          continue
        }
        return .stored(
          response,
          thenRevalidate: revalidation.map {
            ($0, OriginRequest(self, found.candidates, fallback: index, reason: .stale, selectsStored: true))
          })
      case .fetch(let sent, let fallback, let reason):
        // Without a validator, the plan does not know this policy.
        guard request.policy != .cacheOnly else { return .generated(HTTPResponse(status: .gatewayTimeout)) }
        let selectsStored = !found.candidates.isEmpty && planner.selects(found.plan, for: head)
        return .askOrigin(
          sent, OriginRequest(self, found.candidates, fallback: fallback, reason: reason, selectsStored: selectsStored))
      case .answer(let response): return .generated(response)
      }
    }
  }

  /// A mirror is asked without regard to what is stored, because that is another server's.
  private func mirrored(_ candidates: [Candidate]) throws(CacheError) -> Decision {
    guard case .fetch(let sent, _, let reason) = planner.plan(head, stored: []) else {
      return .generated(HTTPResponse(status: .gatewayTimeout))
    }
    let selectsStored = planner.selection(by: head, from: candidates.map(\.metadata)) != nil
    return .askOrigin(sent, OriginRequest(self, candidates, fallback: nil, reason: reason, selectsStored: selectsStored))
  }

  /// Responds with a stored response. Returns `nil` if its body is gone or cannot be read.
  func stored(_ candidate: Candidate) async throws(CacheError) -> TransactionResponse? {
    let reply = reply(from: candidate.metadata)
    guard let content = try await cache.content(of: candidate, reply.content) else { return nil }
    cache.promote(content, candidate)
    return TransactionResponse(stored: candidate, reply.head, content, hit(candidate.metadata))
  }

  /// The part of a stored response that the caller gets. A load gets the whole.
  func reply(from metadata: StoredMetadata) -> StoredReply {
    guard request.destination.isStream else { return StoredReply(head: metadata.response, content: .whole) }
    return request.validator?.reply(to: head, from: metadata, now: request.clock.now)
      ?? StoredReply(head: metadata.response, content: head.method == .head ? .none : .whole)
  }

  func hit(_ metadata: StoredMetadata) -> CacheStatus {
    CacheStatus("", hitFor: metadata.freshness.freshUntil - request.clock.now)
  }
}

extension TransactionResponse {
  /// A stored response with its content at the destination.
  init(stored candidate: Candidate, _ head: HTTPResponse, _ content: TieredCache.Content, _ status: CacheStatus) {
    self.init(
      head: head, body: content.body, source: content.source, stored: candidate, status: status, isBodyLeft: content.isBodyLeft,
      encoded: content.encoded, reservation: content.reservation)
  }
}
