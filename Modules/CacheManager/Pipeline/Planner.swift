internal import CacheCore
internal import HTTPTypes

/// Makes decisions with the request's validator, or by the time to live alone if there is none.
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
    // The stores leave out expired entries, so every returned entry may be used.
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
    case .fetch, .respond: false
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
