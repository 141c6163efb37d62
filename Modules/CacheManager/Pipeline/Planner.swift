internal import CacheCore
internal import HTTPTypes

/// Decides with the load's validator, or by the time to live alone when there is none.
struct Planner {
  let load: ResolvedRequest
  let policy: LoadPolicy

  init(_ load: ResolvedRequest, policy: LoadPolicy? = nil) {
    self.load = load
    self.policy = policy ?? load.policy
  }

  func plan(_ request: HTTPRequest, stored: [StoredMetadata]) -> ValidationPlan {
    plan(request, stored: stored, at: load.clock.now)
  }

  /// Decides about a response that the origin sent, or confirmed, after the request had arrived. The request needs no validation
  /// of its own (RFC 9111 §4). Everything else that it demands of a response counts: selecting fields, age, directives.
  func plan(_ request: HTTPRequest, validatedMeanwhile metadata: StoredMetadata) -> ValidationPlan {
    let now = load.clock.now
    var validated = metadata
    validated.freshness.requiresRevalidation = false
    validated.freshness.freshUntil = max(metadata.freshness.freshUntil, now + .nanoseconds(1))
    return plan(request, stored: [validated], at: now)
  }

  private func plan(_ request: HTTPRequest, stored: [StoredMetadata], at now: Timestamp) -> ValidationPlan {
    if let validator = load.validator {
      // Results are whole bodies: what the caller asks for under conditions of its own, in part, or as a head alone is the
      // origin's to answer.
      let stored = load.isExchange || request.wantsWholeBody ? stored : []
      return validator.plan(request, policy: policy, stored: stored, now: now)
    }
    // The stores have dropped what is expired: what they still hold may be used.
    guard request.method == .get, let newest = stored.indices.max(by: { stored[$0].responseTime < stored[$1].responseTime })
    else {
      return .fetch(request, fallback: nil, reason: stored.isEmpty ? .uriMiss : .method)
    }
    switch policy {
    case .standard, .cacheFirst, .cacheOnly, .memoryElseReload: return .use(newest, thenRevalidate: nil)
    case .staleWhileRevalidate: return .use(newest, thenRevalidate: request)
    case .revalidate(let floor, _):
      if let floor, now - stored[newest].responseTime < floor { return .use(newest, thenRevalidate: nil) }
      return .fetch(request, fallback: newest, reason: .request)
    case .reload: return .fetch(request, fallback: nil, reason: .request)
    }
  }

  /// The request fields in which requests must be equal to share one response: those that selected it, and `Cookie` where it was
  /// not fresh even when it came. An origin that states no lifetime may make such a response for one user, and not say so.
  /// Without a validator no field selects.
  func sharingFields(of metadata: StoredMetadata) -> [HTTPField.Name] {
    let names = load.validator?.selectingFields(of: metadata) ?? []
    return metadata.wasFresh ? names : names + [.cookie]
  }

  /// Which stored answer the request selects, fresh or not.
  func selection(by request: HTTPRequest, from stored: [StoredMetadata]) -> Int? {
    guard !stored.isEmpty else { return nil }
    guard case .use(let index, _) = Planner(load, policy: .cacheOnly).plan(request, stored: stored) else { return nil }
    return index
  }

  func judge(
    _ answer: Result<HTTPResponse, CacheError>, to request: HTTPRequest, sent: HTTPRequest, fallback: Int?,
    stored: [StoredMetadata], requestTime: Timestamp
  ) -> ValidationVerdict {
    let now = load.clock.now
    let revision = Revision.random()
    if let validator = load.validator {
      return validator.judge(
        answer, to: request, sent: sent, fallback: fallback, stored: stored, requestTime: requestTime, now: now,
        revision: revision)
    }
    switch answer {
    case .failure(let error):
      guard let fallback, error.isUnreachable else { return .pass(.none, shareable: true) }
      return .serveStale(fallback)
    case .success(let response):
      guard request.method == .get, load.acceptedStatuses.contains(response.status.code), response.status.code != 206 else {
        return .pass(.none, shareable: true)
      }
      var plain = request
      plain.headerFields = [:]
      let metadata = StoredMetadata(
        request: plain, response: response, requestTime: requestTime, responseTime: now, revision: revision,
        freshness: Freshness(generatedAt: now, freshUntil: .distantFuture))
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
  /// Whether the response could be used without validation when it came.
  var wasFresh: Bool { freshness.isFresh(at: responseTime) }
}
