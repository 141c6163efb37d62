public import CacheCore
public import HTTPTypes

extension ETagValidator {
  /// Returns the plan for a request, before any request is sent.
  ///
  /// GET and HEAD can be served from stored responses, even with a range or with the caller's own conditions. In those cases
  /// ``reply(to:from:now:)`` makes the 206, 304 or 416. A request whose conditions only the origin may evaluate (`If-Match`,
  /// `If-Unmodified-Since`; RFC 9111 §4.3.2) is sent unmodified.
  ///
  /// If no request may be sent (`.cacheOnly`, `only-if-cached`) and no stored response is usable, the plan is a 504 (RFC 9111
  /// §5.2.1.7).
  public func plan(_ request: HTTPRequest, policy: LoadPolicy, stored: [StoredMetadata], now: Timestamp) -> ValidationPlan {
    let directives = CacheControl(request: request)
    let plan = decide(request, directives, policy: policy, stored: stored, now: now)
    guard policy == .cacheOnly || directives.onlyIfCached else { return plan }
    return switch plan {
    case .use(let index, _): .use(index, thenRevalidate: nil)
    case .combine(let combination) where !combination.isIncomplete && !combination.requiresValidation: plan
    case .fetch, .combine: .respond(HTTPResponse(status: .gatewayTimeout))
    case .respond: plan
    }
  }

  private func decide(
    _ request: HTTPRequest, _ directives: CacheControl, policy: LoadPolicy, stored: [StoredMetadata], now: Timestamp
  ) -> ValidationPlan {
    guard request.method == .get || request.method == .head else { return .fetch(request, fallback: nil, reason: .method) }
    if Preconditions.areOrigins(of: request) { return .fetch(request, fallback: nil, reason: .request) }
    if policy == .reload { return .fetch(request.pastAllCaches(), fallback: nil, reason: .request) }
    let selected = usable(for: request, from: stored, now: now)
    if selected == nil,
      let combination = combination(for: request, directives, policy: policy, stored: stored, now: now)
    {
      return .combine(combination)
    }
    guard let match = selected ?? negotiated(by: request, from: stored) else { return miss(request, stored, directives) }
    let metadata = stored[match]
    let use = StoredUse(freshness: metadata.freshness, directives: directives, now: now)
    switch policy {
    case .cacheFirst, .memoryElseReload, .cacheOnly:
      return .use(match, thenRevalidate: nil)
    case .revalidate(let floor, _):
      if needsNoRevalidation(metadata, use, atMostEvery: floor, now: now) { return .use(match, thenRevalidate: nil) }
    case .staleWhileRevalidate where use.mayShowStale:
      if !use.isFresh { return .use(match, thenRevalidate: revalidation(request, directives, selected, stored)) }
      return .use(match, thenRevalidate: nil)
    case .standard, .staleWhileRevalidate, .reload:
      if use.isFresh || use.isAcceptedStale { return .use(match, thenRevalidate: nil) }
      if use.mayStayWhileRevalidated { return .use(match, thenRevalidate: revalidation(request, directives, selected, stored)) }
    }
    let reason: ForwardReason = selected == nil ? .varyMiss : metadata.freshness.isFresh(at: now) ? .request : .stale
    return .fetch(
      revalidating(request, directives, selected, stored), fallback: use.mayBeFallback ? match : nil, reason: reason)
  }

  /// Whether ``LoadPolicy/revalidate`` uses a response without a request.
  func needsNoRevalidation(_ metadata: StoredMetadata, _ use: StoredUse, atMostEvery floor: Duration?, now: Timestamp) -> Bool {
    if use.isFresh, isImmutable(metadata) { return true }
    // If the clock was set back, the elapsed time is unknown.
    guard let floor, use.isAcceptable, now >= metadata.responseTime else { return false }
    return now - metadata.responseTime < floor
  }

  /// Whether the origin states that the response does not change while it is fresh, so that a revalidation would be useless
  /// (RFC 8246 §2). Over `http`, another party may have added the directive, so it has no effect (§3).
  private func isImmutable(_ metadata: StoredMetadata) -> Bool {
    metadata.request.scheme == "https"
      && ResponseSummary(metadata.response.headerFields, rules, responseTime: metadata.responseTime).directives.immutable
  }

  /// Returns the stored response that can serve a request: the one that it selects or, for a range, a stored part that contains
  /// it. A fresh one comes first, then the whole response.
  func usable(for request: HTTPRequest, from stored: [StoredMetadata], now: Timestamp) -> Int? {
    let whole = selected(by: request, from: stored)
    guard parts != .ignored, let range = request.singleRange, whole.map({ !stored[$0].freshness.isFresh(at: now) }) ?? true else {
      return whole
    }
    let holding = stored.indices.filter { index in
      StoredPart(stored[index])?.covered(range) != nil && matches(stored[index], request)
        && Preconditions(request: request).allowsRange(stored[index])
    }
    return holding.first { stored[$0].freshness.isFresh(at: now) } ?? whole
      ?? holding.max { Self.isOlder(stored[$0], stored[$1]) }
  }

  /// Returns the latest stored response that serves a request by content negotiation, although its selecting fields differ. It
  /// is used only without revalidation, because a 304 confirms another variant only by a strong tag.
  private func negotiated(by request: HTTPRequest, from stored: [StoredMetadata]) -> Int? {
    guard !negotiation.isEmpty else { return nil }
    return stored.indices.filter { index in
      stored[index].response.status == .ok && accepts(stored[index])
        && SelectingFields.match(stored[index], request, secret: secret, mode: rules.mode, negotiation)
    }.max { Self.isOlder(stored[$0], stored[$1]) }
  }

  /// Returns the plan if no stored response is usable. The origin may still confirm another variant.
  private func miss(_ request: HTTPRequest, _ stored: [StoredMetadata], _ directives: CacheControl) -> ValidationPlan {
    guard !stored.isEmpty else { return .fetch(request, fallback: nil, reason: .uriMiss) }
    let reason: ForwardReason = stored.contains { matches($0, request) } ? .partial : .varyMiss
    return .fetch(revalidating(request, directives, nil, stored), fallback: nil, reason: reason)
  }

  /// Returns the request for a revalidation in the background. It is for the whole response and without the caller's conditions,
  /// because its result is for the store.
  private func revalidation(
    _ request: HTTPRequest, _ directives: CacheControl, _ selected: Int?, _ stored: [StoredMetadata]
  ) -> HTTPRequest {
    let isForPart = selected.map { stored[$0].isPart } ?? false
    return revalidating(isForPart ? request : request.withoutConditionsAndRange(), directives, selected, stored)
  }

  /// Returns the request with conditions for the stored response that it selects, if any, and for others.
  private func revalidating(
    _ request: HTTPRequest, _ directives: CacheControl, _ selected: Int?, _ stored: [StoredMetadata]
  ) -> HTTPRequest {
    let others = otherResponses(besides: selected, of: stored, for: request)
    return request.revalidating(selected.map { stored[$0] }, and: others, directives)
  }

  /// Returns the other stored responses of the resource that one request can revalidate too (RFC 9111 §4.3.1), latest first.
  /// Parts are excluded, because they help only a request for the same part.
  private func otherResponses(besides match: Int?, of stored: [StoredMetadata], for request: HTTPRequest) -> [StoredMetadata] {
    guard stored.count > 1 || match == nil else { return [] }
    return stored.indices.filter { $0 != match && !stored[$0].isPart && mayConfirm(stored[$0], request) }.map { stored[$0] }
      .sorted { Self.isOlder($1, $0) }
  }

  /// Returns whether a 304 may confirm the stored response for this request. It must never give one user's response to another.
  /// Another variant needs a strong tag and the same coding.
  ///
  /// A weak tag may label both the compressed and the plain bytes (RFC 9110 §8.8.1), and a client that did not ask for compressed
  /// bytes cannot decode them. Any client can read the plain bytes. However, an origin that compresses dynamically would confirm
  /// them to all clients, and no client would receive compressed bytes again.
  func mayConfirm(_ metadata: StoredMetadata, _ request: HTTPRequest) -> Bool {
    guard metadata.response.status == .ok, accepts(metadata),
      SelectingFields.haveSameCredentials(metadata, request, secret: secret, mode: rules.mode)
    else { return false }
    if matches(metadata, request) { return true }
    return EntityTag.strong(of: metadata.response.headerFields) != nil
      && SelectingFields.haveSameCodings(metadata, request, secret: secret)
  }
}

/// The permitted uses of a stored response at `now`, according to its freshness and the request's directives (RFC 9111 §4.2,
/// §4.2.4, §5.2.1).
struct StoredUse {
  let freshness: Freshness
  let directives: CacheControl
  let now: Timestamp

  /// Whether the response may be used without revalidation.
  var isFresh: Bool { freshness.isFresh(at: now) && !isRefused }

  /// Whether the request accepts the response although it is stale (`max-stale`), and the response does not forbid that.
  var isAcceptedStale: Bool { directives.maxStale != nil && mayShowStale }

  /// Whether the response, although stale, may be used while it is revalidated (RFC 5861 §3). A request that limits the age
  /// accepts no stale response.
  var mayStayWhileRevalidated: Bool {
    guard let until = freshness.staleWhileRevalidateUntil, now < until else { return false }
    return !isRefused && isStaleAcceptable && !freshness.requiresRevalidation
  }

  /// Whether the response may be used at once, fresh or stale.
  var mayShowStale: Bool { !freshness.requiresRevalidation && mayBeFallback }

  /// Whether the response may be used if the origin cannot be reached (RFC 9111 §4.2.4).
  var mayBeFallback: Bool {
    guard !isRefused else { return false }
    return freshness.isFresh(at: now) || (allowsOffline && isStaleAcceptable)
  }

  private var allowsOffline: Bool { freshness.staleIfErrorUntil.map { now < $0 } ?? false }

  /// Whether the response satisfies the request's limits of age and freshness, regardless of its own directives.
  var isAcceptable: Bool { !isRefused && (now < freshness.freshUntil || isStaleAcceptable) }

  /// Whether the request's directives rule out the response, fresh or stale. `max-age=0` does so even at age zero, because its
  /// purpose is to force revalidation.
  private var isRefused: Bool {
    if directives.noCache { return true }
    if let maxAge = directives.maxAge, maxAge == .zero || freshness.age(at: now) > maxAge { return true }
    if let minFresh = directives.minFresh, freshness.freshUntil - now < minFresh { return true }
    return false
  }

  /// Whether the request accepts a stale response. A limit of the age requires a fresh one, unless `max-stale` permits staleness
  /// (RFC 9111 §5.2.1.1, §5.2.1.2).
  private var isStaleAcceptable: Bool {
    if let maxStale = directives.maxStale { return now - freshness.freshUntil <= maxStale }
    return directives.maxAge == nil
  }
}
