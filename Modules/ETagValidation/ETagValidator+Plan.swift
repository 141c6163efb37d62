public import CacheCore
public import HTTPTypes

extension ETagValidator {
  /// Decides before the network is asked.
  ///
  /// Only GET is answered from what is stored. A request with conditions or a range of its own goes out as it is: its 304, 412 or 206 is the
  /// caller's. Where the network is out of bounds (`.cacheOnly`, `only-if-cached`) and nothing stored will do, the answer is 504 (RFC 9111 §5.2.1.7).
  public func plan(_ request: HTTPRequest, policy: LoadPolicy, stored: [StoredMetadata], now: Timestamp) -> ValidationPlan {
    let directives = CacheControl(request: request)
    let plan = decide(request, directives, policy: policy, stored: stored, now: now)
    guard policy == .cacheOnly || directives.onlyIfCached else { return plan }
    return switch plan {
    case .use(let index, _): .use(index, thenRevalidate: nil)
    case .fetch: .answer(HTTPResponse(status: .gatewayTimeout))
    case .answer: plan
    }
  }

  private func decide(
    _ request: HTTPRequest, _ directives: CacheControl, policy: LoadPolicy, stored: [StoredMetadata], now: Timestamp
  ) -> ValidationPlan {
    guard request.method == .get else { return .fetch(request, fallback: nil, reason: .method) }
    guard !request.hasConditionsOrRange else { return .fetch(request, fallback: nil, reason: .request) }
    if policy == .reload { return .fetch(request.pastAllCaches(), fallback: nil, reason: .request) }
    guard let match = selected(by: request, from: stored) else {
      return .fetch(request, fallback: nil, reason: stored.isEmpty ? .uriMiss : .varyMiss)
    }
    let metadata = stored[match]
    let use = StoredUse(facts: metadata.facts, directives: directives, now: now)
    switch policy {
    case .cacheFirst, .memoryElseReload, .cacheOnly:
      return .use(match, thenRevalidate: nil)
    case .revalidate(let floor, _):
      // A clock that was set back proves nothing about the time that passed.
      if let floor, use.isWelcome, now >= metadata.responseTime, now - metadata.responseTime < floor {
        return .use(match, thenRevalidate: nil)
      }
    case .staleWhileRevalidate where use.mayShowStale:
      if !use.isFresh { return .use(match, thenRevalidate: request.asking(about: metadata, directives)) }
      return .use(match, thenRevalidate: nil)
    case .standard, .staleWhileRevalidate, .reload:
      if use.isFresh || use.isAcceptedStale { return .use(match, thenRevalidate: nil) }
      if use.mayStayWhileRevalidated {
        return .use(match, thenRevalidate: request.asking(about: metadata, directives))
      }
    }
    return .fetch(
      request.asking(about: metadata, directives), fallback: use.mayStandIn ? match : nil,
      reason: metadata.facts.isFresh(at: now) ? .request : .stale)
  }
}
