internal import CacheCore
internal import HTTPTypes

/// A request that goes past the cache, and what follows from its answer.
struct Forwarding: Sendable {
  let responder: Responder
  let candidates: [Candidate]
  let fallback: Int?
  let reason: ForwardReason
  /// Where others wait for the answer.
  var leader: CoalescingLeader?

  var load: ResolvedRequest { responder.load }
  var cache: TieredCache { responder.cache }
  private var stored: [StoredMetadata] { candidates.map(\.metadata) }

  /// An answer's head, and when it was asked for.
  struct Answer {
    var response: DownloadResponse
    var requestTime: Timestamp
  }

  /// Sends the request; once more, without the cache's own conditions, when the answer to them is of no use.
  func run(_ first: HTTPRequest, _ firstBody: ResourceBody?) async throws(CacheError) -> CachedResponse {
    var (sent, body) = (first, firstBody)
    for attempt in 1...2 {
      guard let downloader = load.downloader else { return try await standIn(for: Self.noDownloader, sent, load.clock.now) }
      let requestTime = load.clock.now
      let answer: Answer
      do throws(CacheError) {
        let response = try await downloader.download(
          DownloadRequest(
            head: sent, body: body, priority: LoadPriority(load.priority), idleTimeout: load.idleTimeout,
            timeout: load.timeout, networkAccess: load.networkAccess, mayShare: false, attempt: attempt))
        answer = Answer(response: response, requestTime: requestTime)
      } catch {
        return try await standIn(for: error, sent, requestTime)
      }
      let verdict = judge(.success(answer.response.head), sent, requestTime)
      if let freshness = verdict.freshness { leader?.answered(freshness) }
      switch try await carryOut(verdict, answer, sent) {
      case .answered(let response): return response
      case .again(let next): (sent, body) = (next, try Self.anew(body, after: answer.response.head.status.code))
      }
    }
    let error = CacheError(
      .malformedResponse, reason: "the server answered 304 (not modified) to a request without a condition", status: 304)
    leader?.unshared(.failure(error), isUsual: false)
    throw error
  }

  /// The request's body, for a second request.
  ///
  /// - Throws: an error where the body is a stream: the first request has read it, and a second one would be sent with an empty
  ///   body.
  private static func anew(_ body: ResourceBody?, after status: Int) throws(CacheError) -> ResourceBody? {
    guard let body else { return nil }
    guard let data = body.data else {
      throw CacheError(
        .malformedResponse,
        reason: "the response cannot be used, and the request cannot be sent again because its body was a stream", status: status)
    }
    return ResourceBody(data)
  }

  private func judge(
    _ answer: Result<HTTPResponse, CacheError>, _ sent: HTTPRequest, _ requestTime: Timestamp
  ) -> ValidationVerdict {
    Planner(load).judge(
      answer, to: load.head, sent: sent, fallback: fallback, stored: stored, requestTime: requestTime)
  }

  /// A stored answer in place of one that did not come, where that is allowed.
  private func standIn(
    for error: CacheError, _ sent: HTTPRequest, _ requestTime: Timestamp
  ) async throws(CacheError) -> CachedResponse {
    guard !error.isCancellation, !Task.isCancelled else { throw .cancelled }
    leader?.unshared(.failure(error), isUsual: false)
    guard let reply = try await stale(for: .failure(error), sent, requestTime) else { throw forbidden(error) }
    return reply
  }

  /// Why there is no answer: nobody answered; or that, and what is stored may not be used for it, which is an error of its own
  /// (RFC 9111 §5.2.2.2).
  private func forbidden(_ error: CacheError) -> CacheError {
    // Who answers nonsense has been reached.
    guard error.isUnreachable, error.code != .malformedResponse,
      let index = Planner(load).selection(by: load.head, from: stored), stored[index].freshness.staleIfErrorUntil == nil
    else { return error }
    return CacheError(
      .revalidationFailed, reason: "what is stored must be confirmed before it is used, and that failed: \(error.reason)",
      underlying: error)
  }

  /// A stored answer in place of one that did not come, or failed, to an equal request. Nil: this one has to ask for itself.
  func standIn(
    for answer: Result<HTTPResponse, CacheError>, _ sent: HTTPRequest
  ) async throws(CacheError) -> CachedResponse? {
    try await stale(for: answer, sent, load.clock.now, isCollapsed: true)
  }

  private func stale(
    for answer: Result<HTTPResponse, CacheError>, _ sent: HTTPRequest, _ requestTime: Timestamp, isCollapsed: Bool = false
  ) async throws(CacheError) -> CachedResponse? {
    guard case .serveStale(let index) = judge(answer, sent, requestTime),
      let reply = try await responder.reply(with: candidates[index])
    else { return nil }
    var status: CacheStatus
    switch answer {
    case .success(let head): status = forwarded(head.status.code)
    case .failure(let error):
      status = forwarded(nil)
      status.detail = error.code.rawValue
    }
    status.isCollapsed = isCollapsed
    status.lifetimeLeft = candidates[index].metadata.freshness.freshUntil - load.clock.now
    return responder.finished(reply, status)
  }

  // MARK: The answer

  private enum Outcome {
    case answered(CachedResponse)
    case again(HTTPRequest)
  }

  private func carryOut(_ verdict: ValidationVerdict, _ answer: Answer, _ sent: HTTPRequest) async throws(CacheError) -> Outcome {
    switch verdict {
    case .update(let index, let metadata, let changes):
      await drain(answer.response)
      await apply(changes)
      return try await freshen(index, metadata, changes.copy, answer)
    case .store(let variant, let metadata, let changes):
      await apply(StoreChanges(updates: changes.updates, invalidations: changes.invalidations))
      let (body, isStored) = try await storing(
        answer.response.body, metadata, variant, replacing: changes.drops.map { candidates[$0] },
        on: load.head.method == .get ? cache : cache.begunAnew())
      return .answered(passing(answer, body, isStored: isStored, freshness: metadata.freshness))
    case .complete(let index, let variant, let metadata, let changes):
      return try await complete(index, variant, metadata, changes, answer)
    case .pass(let changes, _):
      await apply(changes)
      let status = answer.response.head.status.code
      leader?.unshared(.success(answer.response.head), isUsual: status != 304 && status < 500)
      return .answered(passing(answer, answer.response.body, isStored: false, freshness: nil))
    case .refetch(let next):
      await drain(answer.response)
      return .again(next)
    case .serveStale:
      let head = answer.response.head
      leader?.unshared(.success(head), isUsual: false)
      guard let reply = try await stale(for: .success(head), sent, answer.requestTime) else {
        return .answered(passing(answer, answer.response.body, isStored: false, freshness: nil))
      }
      answer.response.body.source.cancel()
      return .answered(reply)
    }
  }

  private func freshen(
    _ index: Int, _ metadata: StoredMetadata, _ copy: StoreChanges.Copy?, _ answer: Answer
  ) async throws(CacheError) -> Outcome {
    var confirmed = candidates[index]
    confirmed.metadata = metadata
    await cache.update(confirmed)
    load.observe(.revalidated(key: confirmed.key))
    guard var reply = try await responder.reply(with: confirmed) else {
      // The body is gone: all there is is the head. What the caller asked is asked anew.
      return .again(load.head)
    }
    let head = answer.response.head
    var isStored = false
    if let copy, reply.head.status == metadata.response.status {
      (reply.body, isStored) = try await storing(reply.body, copy.metadata, copy.variant, replacing: [])
    } else if isShareable(metadata), metadata.freshness.isFresh(at: load.clock.now) || sharesConfirmation(answer) {
      leader?.stored(confirmed, status: head.status.code)
    } else {
      leader?.unshared(.success(head), isUsual: copy == nil)
    }
    reply.metrics = answer.response.metrics
    var status = forwarded(head.status.code)
    status.isStored = isStored
    status.lifetimeLeft = metadata.freshness.freshUntil - load.clock.now
    return .answered(responder.finished(reply, status))
  }

  /// The stored part and the rest that has come are the whole answer.
  private func complete(
    _ index: Int, _ variant: String, _ metadata: StoredMetadata, _ changes: StoreChanges, _ answer: Answer
  ) async throws(CacheError) -> Outcome {
    guard let part = try await cache.content(of: candidates[index], .whole) else {
      await drain(answer.response)
      return .again(load.head)
    }
    await apply(StoreChanges(updates: changes.updates, invalidations: changes.invalidations))
    let (body, isStored) = try await storing(
      ResourceBody(length: metadata.bodyLength, source: JoinedBody(part.body, answer.response.body)), metadata, variant,
      replacing: changes.drops.map { candidates[$0] })
    let head = load.validator?.reply(to: load.head, from: metadata, now: load.clock.now).head ?? metadata.response
    let response = CachedResponse(
      head: head, body: body, status: forwarded(answer.response.head.status.code), source: .network,
      metrics: answer.response.metrics)
    var status = response.status
    status.isStored = isStored
    return .answered(responder.finished(response, status))
  }

  /// The answer as it came.
  private func passing(_ answer: Answer, _ body: ResourceBody, isStored: Bool, freshness: Freshness?) -> CachedResponse {
    var status = forwarded(nil)
    status.isStored = isStored
    status.lifetimeLeft = freshness.map { $0.freshUntil - load.clock.now }
    let response = CachedResponse(
      head: answer.response.head, body: body, status: status, source: load.isProvided ? .schemeHandler : .network,
      metrics: answer.response.metrics)
    return responder.finished(response, status)
  }

  private func forwarded(_ status: Int?) -> CacheStatus {
    CacheStatus(responder.name ?? "", forwarded: reason, status: status)
  }

  /// Of an answer that another's request has brought.
  func collapsed(with metadata: StoredMetadata, status: Int?) -> CacheStatus {
    var told = forwarded(status)
    told.isCollapsed = true
    told.lifetimeLeft = metadata.freshness.freshUntil - load.clock.now
    return told
  }

  private func apply(_ changes: StoreChanges) async { await cache.apply(changes, to: candidates, of: load.head) }

  /// Reads the end of a 304, which has no content (RFC 9110 §15.4.5): then its connection can be used again. Anything else may
  /// come as slowly as its sender likes, and the caller waits.
  private func drain(_ response: DownloadResponse) async {
    defer { response.body.source.cancel() }
    guard response.head.status == .notModified else { return }
    _ = try? await response.body.source.next()
  }

  private static var noDownloader: CacheError {
    CacheError(.noDownloader, reason: "not in the cache, and there is no downloader to ask")
  }
}

extension ValidationVerdict {
  /// What is known of a response that is stored, or confirmed; nil: it is neither.
  fileprivate var freshness: Freshness? {
    switch self {
    case .update(_, let metadata, _), .store(_, let metadata, _), .complete(_, _, let metadata, _): metadata.freshness
    case .pass, .refetch, .serveStale: nil
    }
  }
}
