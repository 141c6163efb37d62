internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// One HTTP request against the cache and the origin (RFC 9111): look up, plan, use a stored response or send the request, judge,
/// store. An object, because every stage refers to it.
///
/// Loads, loads into files, prefetches and `respond(to:)` all run transactions. They differ only in the ``BodyDestination``.
final class CacheTransaction: Sendable {
  let request: ResolvedRequest
  /// The head of this transaction: the caller's head, or that of a redirect.
  let head: HTTPRequest
  /// The URL to which a redirect led, or `nil` for the caller's.
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

  /// The next step of a transaction after the lookup.
  enum Decision {
    /// A stored response is used. If there is a request, the response is also revalidated.
    case stored(TransactionResponse, thenRevalidate: (HTTPRequest, OriginRequest)?)
    /// The request is sent to the origin with this head.
    case requestOrigin(HTTPRequest, OriginRequest)
    /// The cache generates the response: a 504, because `.cacheOnly` or the request's `only-if-cached` forbids a request.
    case generated(HTTPResponse)
  }

  /// The URL of this transaction in events.
  var observedURL: LoadURL { redirectedURL.map(LoadURL.init) ?? request.observedURL }

  var planner: Planner { Planner(request) }

  /// The same transaction from now on: responses that were removed before are not affected by the removal.
  var restarted: CacheTransaction {
    CacheTransaction(
      request, head: head, redirectedURL: redirectedURL, priority: priority,
      cache: TieredCache(request, resource: cache.resource))
  }

  /// Looks into the stores and decides.
  ///
  /// - Parameter known: The result of an immediately preceding lookup, or `nil` if there was none.
  func decide(_ known: LookupResult? = nil) async throws(CacheError) -> Decision {
    var found: LookupResult
    if let known { found = known } else { found = try await cache.lookUp(head) }
    if request.role == .mirror { return try mirrored(found.candidates) }
    while true {
      if Task.isCancelled { throw .cancelled }
      switch found.plan {
      case .use(let index, let revalidation):
        let candidate = found.candidates[index]
        if revalidation != nil, case .file(let file) = request.destination { await file.setPartAside() }
        guard let response = try await stored(candidate) else {
          // The response was evicted, or it is damaged. Another stored response may match.
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
        // Without a validator, the plan ignores this policy.
        guard request.policy != .cacheOnly else { return .generated(HTTPResponse(status: .gatewayTimeout)) }
        let selectsStored = !found.candidates.isEmpty && planner.selects(found.plan, for: head)
        return .requestOrigin(
          sent,
          OriginRequest(
            self, found.candidates, fallback: fallback, reason: reason, selectsStored: selectsStored,
            storeFailure: found.storeFailure))
      case .respond(let response): return .generated(response)
      }
    }
  }

  /// Plans the request to a mirror. It ignores the stored responses, because they come from another server.
  private func mirrored(_ candidates: [Candidate]) throws(CacheError) -> Decision {
    guard case .fetch(let sent, _, let reason) = planner.plan(head, stored: []) else {
      return .generated(HTTPResponse(status: .gatewayTimeout))
    }
    let selectsStored = planner.selection(by: head, from: candidates.map(\.metadata)) != nil
    return .requestOrigin(sent, OriginRequest(self, candidates, fallback: nil, reason: reason, selectsStored: selectsStored))
  }

  /// Responds with a stored response. Returns `nil` if its body is missing or cannot be read.
  func stored(_ candidate: Candidate) async throws(CacheError) -> TransactionResponse? {
    let reply = reply(from: candidate.metadata)
    guard let content = try await cache.content(of: candidate, reply.content) else { return nil }
    cache.promote(content, candidate)
    return TransactionResponse(stored: candidate, reply.head, content, hit(candidate.metadata))
  }

  /// Returns the part of a stored response for the caller. A load gets the whole response.
  func reply(from metadata: StoredMetadata) -> StoredReply {
    guard request.destination.isStream else { return StoredReply(head: metadata.response, content: .whole) }
    return request.validator?.reply(to: head, from: metadata, now: request.clock.now)
      ?? StoredReply(head: metadata.response, content: head.method == .head ? .none : .whole)
  }

  func hit(_ metadata: StoredMetadata) -> CacheStatus {
    CacheStatus("", hitFor: metadata.freshness.freshUntil - request.clock.now)
  }
}

/// Requests that may use the response to another request.
extension CacheTransaction {
  /// Whether a fresh response to an equal request would satisfy this one. A range may be far from the bytes that the other reader
  /// reads first.
  var isSatisfiedByFreshResponse: Bool {
    guard head.method == .get || head.method == .head, !head.headerFields.contains(.range) else {
      return false
    }
    // Only these fields can make a validator reject a fresh response.
    let mayBeHeard = head.headerFields.contains { Self.limiting.contains($0.name.canonicalName) }
    if request.validator != nil, request.policy == .standard, !mayBeHeard { return true }
    var plainHead = head
    for name in ConfidentialFields.credentials { plainHead.headerFields[name] = nil }
    let now = request.clock.now
    var plain = plainHead
    plain.headerFields = [:]
    let fresh = StoredMetadata(
      request: plain, response: HTTPResponse(status: .ok), requestTime: now, responseTime: now,
      revision: Revision(high: 0, low: 0), freshness: Freshness(generatedAt: now, freshUntil: .distantFuture))
    guard case .use = planner.plan(plainHead, stored: [fresh]) else { return false }
    return true
  }

  /// The fields that can reject a fresh response, in lower case (RFC 9111 §5.2.1, §5.4, §4.3.2).
  private static let limiting = ["cache-control", "pragma", "if-match", "if-unmodified-since"]
}

extension TransactionResponse {
  /// A stored response with its content at the destination.
  init(stored candidate: Candidate, _ head: HTTPResponse, _ content: TieredCache.Content, _ status: CacheStatus) {
    self.init(
      .init(
        head: head, body: content.body, source: content.source, stored: candidate, status: status,
        isBodyLeft: content.isBodyLeft, encoded: content.encoded, reservation: content.reservation))
  }
}

/// The response of a ``CacheTransaction``, on its way to a load or to an HTTP caller.
///
/// A value behind a reference. Each asynchronous call on the way reserves space for it, and would copy a large value.
@dynamicMemberLookup
struct TransactionResponse: Sendable {
  struct Parts: Sendable {
    /// The head for an HTTP caller. For a load, it is the stored or the received head.
    var head: HTTPResponse
    /// The body. Bytes that are already at the load's destination are not included.
    var body: ResourceBody
    /// The layer that the body came from, or the origin.
    var source: ResourceSource
    /// The key and the metadata of the response in the cache, or `nil` if it may not be stored. A new response is stored when its
    /// body has been read.
    var stored: Candidate?
    /// The outcome of revalidating a stored response.
    var validation = RevalidationOutcome.notAttempted
    /// The `Cache-Status` of the response, without the cache's name.
    var status: CacheStatus
    /// Whether other waiters may receive the response too.
    var isShareable = true
    /// The error that caused this stale response to be served.
    var fallbackReason: CacheError?
    /// The response of the origin, or `nil` if no request was sent or the origin did not respond.
    var received: ReceivedResponse?
    /// The body that is being recorded, or `nil` if none is.
    var recording: RecordingBody?
    /// Whether the stored body was left in the durable store, because the stored transforms are sufficient.
    var isBodyLeft = false
    /// The encoded values of these transforms.
    var encoded: [String: Data] = [:]
    /// The part of the memory budget that the body uses.
    var reservation: MemoryReservation?
  }

  // Proof of `@unchecked Sendable`: the parts change only while a single response refers to the storage.
  private final class Storage: @unchecked Sendable {
    var parts: Parts

    init(_ parts: Parts) { self.parts = parts }
  }

  private var storage: Storage

  init(_ parts: Parts) { storage = Storage(parts) }

  subscript<Part>(dynamicMember part: KeyPath<Parts, Part>) -> Part { storage.parts[keyPath: part] }

  subscript<Part>(dynamicMember part: WritableKeyPath<Parts, Part>) -> Part {
    get { storage.parts[keyPath: part] }
    _modify {
      if !isKnownUniquelyReferenced(&storage) { storage = Storage(storage.parts) }
      yield &storage.parts[keyPath: part]
    }
  }
}

/// The head from the origin, with the request that was sent.
final class ReceivedResponse: Sendable {
  let sent: HTTPRequest
  let content: RequestContent
  let response: DownloadResponse
  let requestTime: Timestamp
  /// The uptime at which the request was sent.
  let start: Duration
  let timeToHead: Duration
  let retry: RetryState
  /// The part of the memory budget that the body uses, or `nil` if it is not counted.
  let reservation: MemoryReservation?

  init(
    sent: HTTPRequest, content: RequestContent, response: DownloadResponse, requestTime: Timestamp, start: Duration,
    timeToHead: Duration, retry: RetryState, reservation: MemoryReservation?
  ) {
    (self.sent, self.content, self.response, self.requestTime) = (sent, content, response, requestTime)
    (self.start, self.timeToHead, self.retry, self.reservation) = (start, timeToHead, retry, reservation)
  }

  /// The cost of the response and of the requests before it. It is complete once the body has ended.
  func metrics(at uptime: Duration) -> TransferMetrics {
    retry.total(with: transferMetrics(at: uptime))
  }

  /// Returns the time at which the head arrived. If the downloader has collected the body, that was before now. Otherwise a
  /// response with a slow body would count as later than one that the origin sent after it.
  func timeOfHead(_ now: Timestamp) -> Timestamp {
    guard response.body.data != nil else { return now }
    let metrics = response.metrics()
    guard metrics.attempts <= 1, let total = metrics.total, let timeToHead = metrics.timeToHead else { return now }
    return max(requestTime, now - max(.zero, total - timeToHead - (metrics.queued ?? .zero)))
  }

  /// The cost of this response alone.
  func transferMetrics(at uptime: Duration) -> TransferMetrics {
    response.metrics().completed(timeToHead: timeToHead, total: uptime - start)
  }
}

extension TransferMetrics {
  /// Returns the metrics with the manager's durations in place of those that the engine does not measure.
  ///
  /// - Parameters:
  ///   - timeToHead: The time from the call of the downloader to the head.
  ///   - total: The time from that call until now.
  func completed(timeToHead: Duration, total: Duration) -> TransferMetrics {
    var metrics = self
    metrics.timeToHead = metrics.timeToHead ?? max(.zero, timeToHead - (metrics.queued ?? .zero))
    metrics.total = metrics.total ?? total
    metrics.attempts = max(1, metrics.attempts)
    return metrics
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
