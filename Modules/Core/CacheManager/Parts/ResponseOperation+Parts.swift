internal import CacheCore
internal import HTTPTypes

/// Responds to requests for ranges with parts that several readers share.
extension ResponseOperation {
  /// Combines stored parts with the missing ones. If that is not possible, sends the request.
  @inline(never)
  func combine(_ combination: PartCombination, _ fetch: Fetch) async throws(CacheError) -> CachedResponse {
    let live = request.parts.live(combination, fetch)
    return try await respond(with: live, requiresValidation: combination.requiresValidation, fetch, fetch.head)
  }

  /// Requests the first piece of a range, and responds with the whole range. If an equal request does so, waits for it.
  @inline(never)
  func open(_ piece: Range<Int64>, _ fetch: Fetch, _ sent: HTTPRequest) async throws(CacheError) -> CachedResponse {
    let key = PartTable.key(of: fetch)
    switch request.parts.assignRole(fetch, key) {
    case .alone: return try await send(fetch, sent, nil)
    case .joining(let live): return try await respond(with: live, fetch, sent)
    case .waiting(let outcome):
      var wait = wait
      guard let limit = wait.left(at: request.clock.uptime), let opened = await outcome.value(within: limit, by: request.clock),
        let live = opened, fetch.mayJoin(live), fetch.isSatisfied(by: live, isEarly: true)
      else {
        if Task.isCancelled { throw .cancelled }
        return try await send(fetch, sent, nil)
      }
      return try await respond(with: live, fetch, sent)
    case .opening(let opening):
      switch try await fetch.open(piece) {
      case .parts(let live):
        request.parts.put(live, key)
        opening.outcome.make(live)
        return try await respond(with: live, fetch, sent)
      case .response(let response):
        let isPart = response.head.status == .partialContent
        if isPart || response.head.status == .ok { request.parts.mark(key, at: request.clock.uptime) }
        opening.outcome.make(nil)
        guard isPart, sent.headerFields[.range] != response.received?.sent.headerFields[.range] else { return finished(response) }
        // The caller wants more than this piece, and other pieces could be of another state.
        response.body.source.cancel()
        return try await send(fetch, sent, nil)
      }
    }
  }

  private func respond(
    with live: LiveParts, requiresValidation: Bool = false, _ fetch: Fetch, _ sent: HTTPRequest
  ) async throws(CacheError) -> CachedResponse {
    guard let response = try await fetch.combined(live, requiresValidation: requiresValidation) else {
      return try await send(fetch, sent, nil)
    }
    return finished(response)
  }
}
