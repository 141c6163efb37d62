internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// Sends the request to the origin, and serves a stored response if that fails.
extension Fetch {
  /// The result of sending the request once.
  enum Attempt {
    case response(Exchange)
    /// The response cannot be used. The request is sent again with this head.
    case resend(HTTPRequest)
  }

  /// Sends the request, or responds with the response that another process of the fleet has stored.
  func send(
    _ head: HTTPRequest, _ content: RequestContent = .none, _ retry: RetryState = RetryState()
  ) async throws(CacheError) -> Exchange {
    if let outage = request.outage {
      return try await serveFallback(for: outage, sent: head, requestTime: request.clock.now)
    }
    guard mayWaitForLease, let fleet = request.fleet, case .none = content, let selection = leaseSelection else {
      return try await transmit(head, content, retry)
    }
    return try await sendUnderLease(head, retry, selecting: selection, of: fleet)
  }

  /// Sends the request. If the response to the cache's own conditions cannot be used, sends the request once more without them.
  func transmit(
    _ head: HTTPRequest, _ content: RequestContent, _ retry: RetryState
  ) async throws(CacheError) -> Exchange {
    var (sent, content, retry, isRepeated) = (head, content, retry, false)
    guard let downloader = request.downloader else {
      return try await serveFallback(for: unservable(sent), sent: sent, requestTime: request.clock.now)
    }
    while true {
      // The body is opened before the load waits for memory, because opening it may load something through this manager.
      let body: ResourceBody? = if case .none = content { nil } else { try await content.open() }
      var reservation: MemoryReservation?
      if !request.destination.isStream {
        // Most loads find room.
        reservation = request.budget.startWithoutWaiting(sent, priority, isNested: request.isNested)
        if reservation == nil { reservation = try await request.budget.start(sent, priority) }
      }
      let requestTime = request.clock.now
      let received: ReceivedResponse
      do throws(CacheError) {
        received = try await download(sent, content, body, retry, requestTime, reservation, by: downloader)
      } catch {
        reservation?.release()
        return try await serveFallback(for: error.at(retry.attempt), sent: sent, requestTime: requestTime)
      }
      let attempt: Attempt
      do throws(CacheError) {
        attempt = try await carryOutVerdict(about: received)
      } catch {
        received.response.body.source.cancel()
        reservation?.release()
        throw error
      }
      switch attempt {
      case .response(let response): return response
      case .resend(let next):
        // A request that may have changed something is not sent twice (RFC 9110 §9.2.2).
        guard !isRepeated, sent.method.isIdempotent else {
          return try await serveFallback(for: .unusable(received.head), sent: sent, requestTime: request.clock.now)
        }
        (sent, isRepeated) = (next, true)
        content = try content.again(after: received.head)
        retry.begin(spending: received.metrics(at: request.clock.uptime))
      }
    }
  }

  /// Calls the downloader. Loads that the downloader starts, for a token for example, must not wait for the memory that this load
  /// has reserved.
  @inline(never)
  private func download(
    _ sent: HTTPRequest, _ content: RequestContent, _ body: ResourceBody?, _ retry: RetryState, _ requestTime: Timestamp,
    _ reservation: MemoryReservation?, by downloader: any Downloader
  ) async throws(CacheError) -> ReceivedResponse {
    let start = request.clock.uptime
    let transfer = beginTransfer(sent)
    do throws(CacheError) {
      let isStream = request.destination.isStream
      var download = DownloadRequest(
        head: sent, body: body, priority: priority, idleTimeout: request.idleTimeout, timeout: isStream ? request.timeout : nil,
        networkAccess: request.networkAccess, attempt: retry.attempt, collectUpTo: collectUpTo)
      download.onInterimResponse = request.onInterimResponse
      var response =
        isStream
        ? try await downloader.download(download)
        : try await MemoryBudget.insideLoad { [download] () async throws(CacheError) in try await downloader.download(download) }
      if request.observation != nil || request.reportInFlight != nil { reportEnd(of: &response, transfer, start) }
      return ReceivedResponse(
        sent: sent, content: content, response: response, requestTime: requestTime, start: start,
        timeToHead: request.clock.uptime - start, retry: retry, reservation: reservation, transfer: transfer)
    } catch {
      endTransfer(transfer, start, error)
      throw error
    }
  }

  // MARK: Reporting

  /// Reports that the request is sent, and returns the number of its transfer in events.
  @inline(never)
  private func beginTransfer(_ sent: HTTPRequest) -> Int {
    let transfer = request.observation == nil ? 0 : LoadObservation.makeTransferNumber()
    // Conditions that an HTTP caller sends are not about a stored response of this cache.
    request.observe(
      .requestSent(
        url: observedURL, reason: reason, conditional: selectsStored && sent.isConditional, transfer: transfer))
    request.reportInFlight?(true)
    return transfer
  }

  /// Reports that the downloader has failed.
  @inline(never)
  private func endTransfer(_ transfer: Int, _ start: Duration, _ error: CacheError) {
    request.reportInFlight?(false)
    request.observe(
      .transferEnded(
        url: observedURL, metrics: TransferMetrics(total: request.clock.uptime - start), error: error, transfer: transfer))
  }

  /// Reports a response, and returns the validator's verdict about it.
  @inline(never)
  func judge(_ received: ReceivedResponse) -> ValidationVerdict {
    let head = received.head
    if request.observation != nil { observe(received) }
    let verdict = judge(
      .success(head), sent: received.sent, requestTime: received.requestTime, now: received.timeOfHead(request.clock.now))
    if let leader, let freshness = verdict.freshness { leader.responseArrived(freshness) }
    return verdict
  }

  @inline(never)
  private func observe(_ received: ReceivedResponse) {
    request.observe(.responseReceived(url: observedURL, status: received.status, transfer: received.transfer))
    guard received.response.body.data != nil else { return }
    request.observe(
      .transferEnded(
        url: observedURL, metrics: received.transferMetrics(at: request.clock.uptime), error: nil, transfer: received.transfer))
  }

  /// Makes the body report the end of its transfer. A body that has already arrived reports nothing to the observer.
  @inline(never)
  private func reportEnd(of response: inout DownloadResponse, _ transfer: Int, _ start: Duration) {
    guard response.body.data == nil else {
      request.reportInFlight?(false)
      return
    }
    let (request, url, metrics, head) = (request, observedURL, response.metrics, request.clock.uptime - start)
    let body = ObservedBody(response.body) { error in
      request.reportInFlight?(false)
      let ended = metrics().completed(timeToHead: head, total: request.clock.uptime - start)
      // Loads that the observer starts are not a part of this load.
      MemoryBudget.$isInsideLoad.withValue(false) {
        request.observe(.transferEnded(url: url, metrics: ended, error: error, transfer: transfer))
      }
    }
    response.body = ResourceBody(length: response.body.length, source: body)
  }

  /// The largest body that may arrive with its head. Larger ones are counted by the memory budget while they arrive.
  private var collectUpTo: Int { request.destination.isMemory ? Int(min(64 << 10, request.maximumBodySize)) : 0 }

  /// - Parameter now: The time at which the response arrived, or `nil` for the current time.
  func judge(
    _ response: Result<HTTPResponse, CacheError>, sent: HTTPRequest, requestTime: Timestamp, now: Timestamp? = nil
  ) -> ValidationVerdict {
    if request.staleFallback == .anyStored, isFailure(response), let index = anyStored { return .serveStale(index) }
    return planner.judge(
      response, to: head, sent: sent, fallback: request.staleFallback == .never ? nil : fallback,
      stored: request.role == .mirror ? [] : stored, requestTime: requestTime, now: now ?? request.clock.now)
  }

  private func isFailure(_ response: Result<HTTPResponse, CacheError>) -> Bool {
    switch response {
    case .success(let head): request.isFailure(head)
    case .failure(let error): error.permitsAnyStored
    }
  }

  /// The index of the stored response that the request selects, whatever its directives and those of the request are.
  private var anyStored: Int? {
    guard request.role != .mirror, let index = planner.selection(by: head, from: stored) else {
      return nil
    }
    let response = stored[index].response
    return request.destination.isStream || request.isResult(response) || request.isFollowed(response) ? index : nil
  }

  /// Whether a stored response may be used if the request fails.
  var hasFallback: Bool {
    switch request.staleFallback {
    case .standard: fallback != nil
    case .anyStored: anyStored != nil
    case .never: false
    }
  }

  // MARK: Failing

  /// Returns a response after a body failed while it was collected. Sends the request again if that may help. Otherwise serves
  /// the fallback.
  func recover(from error: CacheError, _ received: ReceivedResponse) async throws(CacheError) -> Exchange {
    received.response.body.source.cancel()
    received.reservation?.release()
    if received.retry.helps(against: error, for: received.sent.method) {
      if Task.isCancelled { throw .cancelled }
      var retry = received.retry
      retry.begin(after: error, spending: received.metrics(at: request.clock.uptime))
      return try await send(received.sent, received.content, retry)
    }
    let failure = error.at(received.retry.attempt)
      .caused(by: received.head, receivedAt: received.requestTime + received.timeToHead)
    guard error.isUnreachable || request.staleFallback == .anyStored else { throw failure }
    return try await serveFallback(for: failure, sent: received.sent, requestTime: received.requestTime)
  }

  /// Serves a stale response because the origin failed, if that is allowed.
  @inline(never)
  func serveFallback(
    for error: CacheError, sent: HTTPRequest, requestTime: Timestamp
  ) async throws(CacheError) -> Exchange {
    guard !error.isCancellation, !Task.isCancelled else { throw .cancelled }
    leader?.endWithoutSharing(.failure(error), isTypical: false)
    lease?.endWithoutSharing(isTypical: false)
    guard let response = try await staleResponse(insteadOf: .failure(error), sent: sent, requestTime: requestTime) else {
      throw request.destination.isStream ? forbidden(error) : error
    }
    return response
  }

  /// Returns a stored response that may be served because the origin failed, or `nil` if there is none.
  func staleResponse(
    insteadOf response: Result<HTTPResponse, CacheError>, sent: HTTPRequest, requestTime: Timestamp, isCollapsed: Bool = false
  ) async throws(CacheError) -> Exchange? {
    guard case .serveStale(let index) = judge(response, sent: sent, requestTime: requestTime) else { return nil }
    return try await staleResponse(index, insteadOf: response, isCollapsed: isCollapsed)
  }

  /// - Parameter attempt: The number of requests that were sent for `response`.
  func staleResponse(
    _ index: Int, insteadOf response: Result<HTTPResponse, CacheError>, attempt: Int = 0, isCollapsed: Bool = false
  ) async throws(CacheError) -> Exchange? {
    let reason: CacheError =
      switch response {
      case .success(let head): .unacceptable(head, now: request.clock.now, attempt: attempt)
      case .failure(let error): error
      }
    if case .file(let file) = request.destination { await file.setPartAside(after: reason) }
    guard var stale = try await self.response(from: candidate(index)) else { return nil }
    stale.fallbackReason = reason
    switch response {
    case .success(let head): stale.status = forwarded(head.status.code)
    case .failure(let error):
      stale.status = forwarded(nil)
      stale.status.detail = error.code.rawValue
    }
    stale.status.isCollapsed = isCollapsed
    stale.status.lifetimeLeft = lifetimeLeft(candidates[index].metadata)
    stale.validation = .failed
    return stale
  }

  /// Returns the error for an HTTP caller. It has its own code if the stored response may not be served stale (RFC 9111
  /// §5.2.2.2).
  private func forbidden(_ error: CacheError) -> CacheError {
    // A malformed response means that the origin was reached.
    guard error.isUnreachable, error.code != .malformedResponse,
      let index = planner.selection(by: head, from: stored),
      stored[index].freshness.staleIfErrorUntil == nil
    else { return error }
    return CacheError(
      .revalidationFailed, reason: "the stored response must be confirmed before it is used, and that failed: \(error.reason)",
      response: error.response, retryAfter: error.retryAfter, underlying: error)
  }

  private func unservable(_ sent: HTTPRequest) -> CacheError {
    let scheme = sent.scheme ?? ""
    guard scheme != "http", scheme != "https" else {
      return CacheError(.noDownloader, reason: "not in the cache, and there is no downloader")
    }
    return CacheError(.unsupportedScheme, reason: "unsupported URL scheme '\(scheme)'")
  }

  // MARK: Status

  /// The status of a response to a forwarded request.
  func forwarded(_ status: Int?) -> CacheStatus {
    var forwarded = CacheStatus("", forwarded: reason, status: status)
    forwarded.detail = storeFailure?.rawValue
    return forwarded
  }

  /// The remaining time of freshness, or `nil` for a load, whose caller receives no status.
  func lifetimeLeft(_ metadata: StoredMetadata) -> Duration? {
    request.destination.isStream ? metadata.freshness.freshUntil - request.clock.now : nil
  }
}

extension CacheError {
  /// Whether ``StaleFallback/anyStored`` applies. Errors of the program, and the end of the load or of its manager, stay visible.
  var permitsAnyStored: Bool {
    ![.cancelled, .closed, .notCached, .invalidConfiguration, .misuse, .unscripted].contains(code)
  }

  /// The error of a response that belongs to a condition or a range that the request did not have.
  fileprivate static func unusable(_ response: HTTPResponse) -> CacheError {
    let name = response.status == .partialContent ? "206 (partial content) to a request for the rest" : "304 (not modified)"
    return CacheError(
      .malformedResponse, reason: "the server answered \(name) to a request without a condition", response: response)
  }

  /// Returns the error with the number of the attempt, unless it has one.
  fileprivate func at(_ attempt: Int) -> CacheError {
    guard self.attempt == nil, !isCancellation else { return self }
    var located = self
    located.attempt = attempt
    return located
  }
}

extension HTTPRequest {
  fileprivate var isConditional: Bool { headerFields[.ifNoneMatch] != nil || headerFields[.ifModifiedSince] != nil }
}

extension ValidationVerdict {
  /// The freshness of a response that is stored or confirmed, or `nil` if it is neither.
  fileprivate var freshness: Freshness? {
    switch self {
    case .update(_, let metadata, _), .store(_, let metadata, _): metadata.freshness
    case .pass, .refetch, .serveStale: nil
    }
  }
}

/// The requests that the manager repeats because a body was interrupted, and their metrics. A retry policy of the downloader has
/// made its own attempts before.
struct RetryState: Sendable {
  /// The maximum number of repeated requests, for engines without a retry policy that always report an interruption.
  private static let limit = 10

  private var count = 0
  /// The number of the next attempt, from 1.
  private(set) var attempt = 1
  /// The metrics of the attempts before it, or `nil` if there were none.
  private var earlier: SpentMetrics?

  /// Returns the cost of the attempts before this one, and of this one.
  func total(with metrics: TransferMetrics) -> TransferMetrics { earlier?.metrics.followed(by: metrics) ?? metrics }

  /// Whether a request that ended with `error` is sent again.
  func helps(against error: CacheError, for method: HTTPRequest.Method) -> Bool {
    error.code == .bodyInterrupted && count < Self.limit && method.isIdempotent
  }

  /// - Parameter error: The error of the request before, or `nil` if its response could not be used.
  mutating func begin(after error: CacheError? = nil, spending metrics: TransferMetrics) {
    if error != nil { count += 1 }
    attempt = max(attempt, error?.attempt ?? attempt) + 1
    earlier = SpentMetrics(metrics)
  }
}

/// The body of a request that may be sent more than once.
enum RequestContent: Sendable {
  case none
  /// A body that can be opened again for each request.
  case reopened(RequestBody)
  /// A body that can be read once.
  case stream(ResourceBody)

  func open() async throws(CacheError) -> ResourceBody? {
    switch self {
    case .none: nil
    case .reopened(let body): try await body.opened()
    case .stream(let body): body
    }
  }

  /// Returns the body for another request.
  ///
  /// - Throws: An error if the first request has consumed the body.
  func again(after response: HTTPResponse) throws(CacheError) -> RequestContent {
    guard case .stream(let body) = self else { return self }
    guard let data = body.data else {
      throw CacheError(
        .malformedResponse,
        reason: "the response cannot be used, and the request cannot be sent again because its body was a stream",
        response: response)
    }
    return .stream(ResourceBody(data))
  }
}
