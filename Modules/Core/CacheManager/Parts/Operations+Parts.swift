internal import CacheCore
internal import HTTPTypes

/// Responds to requests for ranges with parts that several readers share.
extension ResponseOperation {
  /// Combines stored parts with the missing ones. If that is not possible, sends the request. Equal requests for the whole
  /// response share one body, as they would if nothing were stored.
  ///
  /// - Parameter arrival: The count of the coalescer when the request arrived.
  @inline(never)
  func combine(
    _ combination: PartCombination, _ fetch: Fetch, since arrival: Int
  ) async throws(CacheError) -> CachedResponse {
    let live = request.parts.live(combination, fetch)
    var operation = self
    operation.combination = (live, combination.requiresValidation)
    let isMissing = combination.requiresValidation || live.firstMissing(in: 0..<live.length) != nil
    guard fetch.permitsRequest, isMissing else { return try await operation.send(fetch, fetch.head, nil) }
    return try await operation.forward(fetch, fetch.head, nil, since: arrival)
  }

  /// Returns the response that is combined from parts, or `nil` if the request must be sent.
  @inline(never)
  func combined(
    _ live: LiveParts, _ requiresValidation: Bool, _ fetch: Fetch
  ) async throws(CacheError) -> Exchange? {
    do throws(CacheError) {
      return try await fetch.combined(live, requiresValidation: requiresValidation)
    } catch {
      // Each waiting request then asks the origin itself, as after any other failure.
      if !error.isCancellation { fetch.leader?.endWithoutSharing(.failure(error), isTypical: false) }
      throw error
    }
  }

  /// Requests the first piece of a range, and responds with the whole range. If another request does so, waits for it.
  @inline(never)
  func open(_ piece: Range<Int64>, _ fetch: Fetch, _ sent: HTTPRequest) async throws(CacheError) -> CachedResponse {
    let key = PartTable.key(of: fetch)
    var wait = wait
    while true {
      switch request.parts.assignRole(fetch, key) {
      case .alone: return try await send(fetch, sent, nil)
      case .joining(let live): return try await respond(with: live, fetch, sent)
      case .waiting(let pending):
        let outcome: PartTable.Outcome? =
          if let limit = wait.left(at: request.clock.uptime) {
            await pending.value(within: limit, by: request.clock)
          } else {
            nil
          }
        if Task.isCancelled { throw .cancelled }
        switch outcome {
        case .parts(let live)
        where fetch.mayJoin(live) && live.isShareable(with: fetch.head) && fetch.isSatisfied(by: live, isEarly: true):
          return try await respond(with: live, fetch, sent)
        // One of the waiting requests is sent instead.
        case .abandoned: continue
        case .parts, .unusable, nil: return try await send(fetch, sent, nil)
        }
      case .opening(let opening):
        switch try await fetch.open(piece) {
        case nil:
          opening.outcome.make(.unusable)
          return try await send(fetch, sent, nil)
        case .parts(let live)?:
          request.parts.put(live, key)
          opening.outcome.make(.parts(live))
          return try await respond(with: live, fetch, sent)
        case .response(let response)?:
          let isPart = response.head.status == .partialContent
          if isPart || response.head.status == .ok { request.parts.mark(key, at: request.clock.uptime) }
          opening.outcome.make(.unusable)
          guard isPart, sent.headerFields[.range] != response.received?.sent.headerFields[.range] else {
            return finished(response)
          }
          // The caller wants more than this piece, and other pieces could be of another state.
          response.body.source.cancel()
          return try await send(fetch, sent, nil)
        }
      }
    }
  }

  private func respond(with live: LiveParts, _ fetch: Fetch, _ sent: HTTPRequest) async throws(CacheError) -> CachedResponse {
    guard let response = try await fetch.combined(live, requiresValidation: false) else {
      return try await send(fetch, sent, nil)
    }
    return finished(response)
  }
}

/// Loads the whole response from its parts.
extension LoadOperation {
  /// Combines stored parts with the missing ones into the whole response. If that fails, requests the whole response.
  @inline(never)
  func combine(_ combination: PartCombination, _ fetch: Fetch) async throws(CacheError) -> Exchange {
    // Engines decode whole bodies, and no parts.
    guard combination.whole.response.headerFields[.contentEncoding] == nil, !keepsBytesInFile || !combination.isIncomplete else {
      return try await request(whole: fetch)
    }
    let live = request.parts.live(combination, fetch)
    guard var exchange = try await fetch.combined(live, requiresValidation: combination.requiresValidation) else {
      return try await request(whole: fetch)
    }
    guard let recording = exchange.recording else { return exchange }
    do throws(CacheError) {
      exchange.complete(
        with: try await recording.record { report(.progress(LoadProgress(received: $0, expected: live.length))) })
      if !live.mayBeStored { exchange = exchange.with { ($0.isStored, $0.isShareable) = (false, false) } }
      return exchange
    } catch {
      exchange.reservation?.release()
      if error.isCancellation || error.code == .bodyTooLarge { throw error }
      report(.progress(LoadProgress(received: 0)))
      return try await request(whole: fetch)
    }
  }

  /// Whether only the file can keep the bytes of a load that ends early. A body that is combined leaves no part of a file.
  private var keepsBytesInFile: Bool {
    if case .file = request.destination { request.writes.isEmpty } else { false }
  }

  /// Requests the whole response, because stored parts could not be combined.
  private func request(whole fetch: Fetch) async throws(CacheError) -> Exchange {
    guard fetch.permitsRequest else { throw .onlyCached }
    return try await collect(fetch.head, fetch)
  }
}
