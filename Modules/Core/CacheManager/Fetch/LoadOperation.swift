internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// One load of bytes from start to end. It fetches along redirects, and collects the last response at its destination.
///
/// Each redirect is a ``Fetch`` of its own, so each is cached by its own rules. If the original cannot be loaded, the alternative
/// sources are tried.
struct LoadOperation: Sendable {
  let request: ResolvedRequest
  let priority: LoadPriority
  let report: @Sendable (FlightEvent<Exchange>) -> Void
  let flights: Flights

  /// - Parameter known: The responses that the load has already found in the stores.
  func run(_ known: KnownResponses? = nil) async -> Result<Exchange, CacheError> {
    let failure = knownFailure
    let load = failure.map { performing(request.after($0)) } ?? reportingInFlight
    let result: Result<Exchange, CacheError>
    do throws(CacheError) {
      let isAlone = request.alternatives.isEmpty
      result = .success(isAlone ? try await load.followingRedirects(known) : try await load.tryingAlternatives())
    } catch {
      let error = error.about(request.address)
      result = await load.anyStored(insteadOf: error).map { .success($0) } ?? .failure(error)
    }
    if failure == nil { request.failures.note(result, of: request) }
    return result
  }

  /// The error of a recent request after which this load sends none, or `nil` if the load may send requests.
  private var knownFailure: CacheError? {
    request.failures.error(of: request).flatMap { Fetch(request, priority).isSatisfiedByFreshResponse ? $0 : nil }
  }

  /// The load, which reports its requests if their failures are noted.
  private var reportingInFlight: LoadOperation {
    guard RecentFailures.includes(request) else { return self }
    return performing(request.with { $0.reportInFlight = { [report] in report(.inFlight($0)) } })
  }

  /// Returns the stored response for a load that failed as a whole, for example because a redirect was refused. Out of line,
  /// because an asynchronous call allocates memory for everything that is inlined into it.
  @inline(never)
  private func anyStored(insteadOf error: CacheError) async -> Exchange? {
    guard request.staleFallback == .anyStored, error.permitsAnyStored, !isAboutTarget(error), !Task.isCancelled else {
      return nil
    }
    if case .file(let file) = request.destination { await file.setPartAside(after: error) }
    let stored = try? await performing(request.with { $0.policy = .cacheOnly }).followingRedirects()
    return stored?.with { ($0.validation, $0.fallbackReason) = (.failed, error) }
  }

  func performing(_ load: ResolvedRequest) -> LoadOperation {
    LoadOperation(request: load, priority: priority, report: report, flights: flights)
  }

  func followingRedirects(_ known: KnownResponses? = nil) async throws(CacheError) -> Exchange {
    var hop: RedirectHop?
    var earlier: [Exchange] = []
    do throws(CacheError) {
      while true {
        let exchange = try await fetch(hop, known)
        guard try isRedirect(exchange) else { return earlier.isEmpty ? exchange : exchange.following(earlier) }
        // The interceptor that decides about a redirect may wait for its own loads.
        exchange.reservation?.release()
        guard let next = try await next(after: exchange.metadata.response, to: hop) else {
          try accept(exchange)
          return earlier.isEmpty ? exchange : exchange.following(earlier)
        }
        earlier.append(exchange.with { ($0.body, $0.reservation, $0.received) = (.none, nil, nil) })
        hop = next
        report(.otherURL)
      }
    } catch {
      throw named(error, hop)
    }
  }

  /// Returns the hop to which a redirect leads, or `nil` if the interceptor does not follow it.
  private func next(after response: HTTPResponse, to hop: RedirectHop?) async throws(CacheError) -> RedirectHop? {
    let hop = hop ?? RedirectHop(request: request.head, url: request.url, body: request.body)
    guard var next = try RedirectRules.proposal(after: response, to: hop) else { return nil }
    if let interceptor = request.redirectInterceptor {
      guard let decided = try await RedirectRules.decide(next, after: response, to: hop, interceptor) else { return nil }
      next = decided
    }
    try RedirectRules.check(next, from: hop, request)
    return next
  }

  /// Returns whether the load follows a response to another URL. Throws if it does not and its status is not accepted.
  @inline(never)
  private func isRedirect(_ exchange: Exchange) throws(CacheError) -> Bool {
    if request.isFollowed(exchange.metadata.response) { return true }
    try accept(exchange)
    return false
  }

  private func accept(_ exchange: Exchange) throws(CacheError) {
    let metadata = exchange.metadata
    guard !request.acceptedStatuses.contains(metadata.response.status.code) else { return }
    throw .unacceptable(
      metadata.response, received: metadata.responseTime, now: request.clock.now, attempt: exchange.metrics.attempts)
  }

  // MARK: One hop

  /// Inlined, because each asynchronous call allocates memory.
  @inline(__always)
  private func fetch(_ hop: RedirectHop?, _ known: KnownResponses?) async throws(CacheError) -> Exchange {
    // They are for the first hop. Responses that were found before a removal may have been removed.
    let known = hop == nil && known?.cache.isBehindRemovals == false ? known : nil
    var fetch = Fetch(request, at: hop, priority, known?.cache)
    switch try await fetch.decide(known?.result) {
    case .use(let stored, thenRevalidate: nil): return stored
    case .use(let stored, let sent?) where request.outage != nil:
      // No request follows, so the stored response is the final one, with the outage as its reason.
      stored.reservation?.release()
      stored.body.source.cancel()
      return try await collect(sent, fetch)
    case .use(let stored, let sent?):
      guard request.destination.isMemory || request.writes.contains(.disk) else { return stored }
      if fetch.hasFallback { report(.foundFallback) }
      announce(stored)
      return try await revalidate(sent, fetch)
    case .send(let sent): return try await collect(sent, fetch)
    case .combine(let combination): return try await combine(combination, fetch)
    case .respond(let response):
      guard response.status.code == 504 else { throw .unacceptable(response, now: request.clock.now) }
      throw .onlyCached
    }
  }

  /// Revalidates a response that waiters have already received. If another request is revalidating the same response, waits for
  /// it and looks into the stores again.
  @inline(never)
  private func revalidate(_ sent: HTTPRequest, _ fetch: Fetch) async throws(CacheError) -> Exchange {
    guard request.destination.isMemory else { return try await collect(sent, fetch) }
    var led: Result<Exchange, CacheError>?
    var hasWaited = false
    _ = try await flights.output(
      of: fetch.cache.revalidationKey, for: request.id, priority, joining: { _ in hasWaited = true }
    ) { () throws(CacheError) in
      do throws(CacheError) {
        let stored = hasWaited ? try await current(fetch) : nil
        if let stored { led = .success(stored) } else { led = .success(try await collect(sent, fetch)) }
      } catch {
        // One of the waiters then revalidates the response instead.
        if Task.isCancelled { throw error }
        led = .failure(error)
      }
      return Flights.Done()
    }
    if let led { return try led.get() }
    if let stored = try await current(fetch) { return stored }
    return try await collect(sent, fetch)
  }

  /// Returns a response that was stored while this load waited and that it may use, or `nil` if there is none.
  private func current(_ fetch: Fetch) async throws(CacheError) -> Exchange? {
    let found = try await fetch.cache.lookUp(fetch.head)
    var again = fetch
    guard case .use(_, nil) = found.plan, case .use(let response, _) = try await again.decide(found) else { return nil }
    return response
  }

  /// Sends the request, and collects the body of the response.
  func collect(_ sent: HTTPRequest, _ fetch: Fetch) async throws(CacheError) -> Exchange {
    if fetch.hasFallback { report(.foundFallback) }
    let timer = showCached(fetch)
    defer { timer?.cancel() }
    var exchange = try await fetch.send(sent, (fetch.hop.map(\.body) ?? request.body).map { .reopened($0) } ?? .none)
    if exchange.recording != nil { exchange = try await recorded(exchange, fetch) } else { reportWhole(exchange) }
    addMetrics(to: &exchange, fetch)
    return exchange
  }

  /// Reads the body of a response to its end. If the body breaks off, sends the request again or uses a stored response.
  @inline(never)
  private func recorded(_ exchange: Exchange, _ fetch: Fetch) async throws(CacheError) -> Exchange {
    var exchange = exchange
    while let recording = exchange.recording, let received = exchange.received {
      let length = recording.length
      do throws(CacheError) {
        exchange.complete(with: try await recording.record { report(.progress(LoadProgress(received: $0, expected: length))) })
      } catch {
        if received.retry.helps(against: error, for: received.sent.method) { report(.progress(LoadProgress(received: 0))) }
        exchange = try await fetch.recover(from: error, received)
        if exchange.recording == nil { reportWhole(exchange) }
      }
    }
    return exchange
  }

  /// Reports a body that has arrived as a whole.
  private func reportWhole(_ exchange: Exchange) {
    guard exchange.received != nil, exchange.validation != .notModified, case let count = Int64(exchange.data.count), count > 0
    else { return }
    report(.progress(LoadProgress(received: count, expected: count)))
  }

  @inline(never)
  private func addMetrics(to exchange: inout Exchange, _ fetch: Fetch) {
    exchange.change {
      if let received = $0.received { $0.metrics = received.metrics(at: request.clock.uptime) }
      if let reason = $0.fallbackReason { $0.fallbackReason = named(reason, fetch.hop) }
    }
  }

  private func named(_ error: CacheError, _ hop: RedirectHop?) -> CacheError {
    request.naming(error, at: hop?.url ?? request.url, after: hop?.chain ?? [])
  }

  /// Gives waiters a stored response before the final one, unless it is a redirect or comes from an alternative.
  private func announce(_ stored: Exchange) {
    // The load must not wait for the memory of this response, which depends on the waiters.
    stored.reservation?.release()
    guard request.role == .original, request.isResult(stored.metadata.response) else { return }
    // A load into a file ends with this response. The next one is written to the store alone.
    if case .file(let file) = request.destination { file.seal() }
    report(.stale(stored))
  }

  /// A timer that gives waiters the stored response if the network is slow (`showCachedAfter`).
  private func showCached(_ fetch: Fetch) -> Task<Void, Never>? {
    // A file is written once, with one response.
    guard case .revalidate(_, let delay?) = request.policy, let fallback = fetch.fallback, request.destination.isMemory,
      request.outage == nil
    else { return nil }
    return Task {
      guard (try? await request.clock.sleep(for: delay)) != nil else { return }
      guard let stored = try? await fetch.response(from: fetch.candidate(fallback)), !Task.isCancelled else { return }
      announce(stored)
    }
  }
}

/// The result of the lookup that a load made before its operation started. It is an object, because the tasks of the caller and
/// of the flight pass it on several times.
final class KnownResponses: Sendable {
  let cache: TieredCache
  let result: LookupResult
  /// The ``Flights/endPosition`` at which the result is valid.
  let position: Int

  init(_ result: LookupResult, in cache: TieredCache, at position: Int) {
    (self.result, self.cache, self.position) = (result, cache, position)
  }
}

extension CacheError {
  /// The error of a request that needs the origin although no request may be sent (RFC 9111 §5.2.1.7).
  static let onlyCached = CacheError(.notCached, reason: "not in the cache, and no request may be sent")

  /// - Parameters:
  ///   - received: The time at which the response was received, or `nil` if that is now.
  ///   - attempt: The number of requests that were sent for the response, or 0 if none was sent.
  static func unacceptable(
    _ response: HTTPResponse, received: Timestamp? = nil, now: Timestamp, attempt: Int = 0
  ) -> CacheError {
    let status = response.status
    let phrase = status.reasonPhrase.isEmpty ? phrases[status.code] ?? "" : status.reasonPhrase
    let words = phrase.isEmpty ? "" : " \(phrase)"
    return CacheError(
      unacceptable: response, reason: "the server answered \(status.code)\(words)", received: received ?? now, now: now,
      attempt: attempt > 0 ? attempt : nil)
  }

  /// The phrases of common statuses (RFC 9110 §15). HTTP/2 has no reason phrases, and not every engine reports them.
  private static let phrases: [Int: String] = {
    let met: [HTTPResponse.Status] = [
      .movedPermanently, .found, .seeOther, .notModified, .temporaryRedirect, .permanentRedirect, .badRequest, .unauthorized,
      .forbidden, .notFound, .methodNotAllowed, .notAcceptable, .requestTimeout, .conflict, .gone, .tooManyRequests,
      .internalServerError, .notImplemented, .badGateway, .serviceUnavailable, .gatewayTimeout,
    ]
    return Dictionary(met.map { ($0.code, $0.reasonPhrase) }, uniquingKeysWith: { first, _ in first })
  }()
}

/// Loads the original and then its alternatives in order, until one of them succeeds.
extension LoadOperation {
  func tryingAlternatives() async throws(CacheError) -> Exchange {
    var failures: [CacheError] = []
    var fallback: Exchange?
    let account = TransferMeter(request.clock)
    do throws(CacheError) {
      let original = try await fetch(account.metering(self.original))
      guard let failure = original.fallbackReason, Self.isWorthAnother(failure) else { return original }
      // A response of another source is better than a stored one that cannot be confirmed.
      fallback = original
      // The bodies of the alternatives must not wait for its memory.
      original.reservation?.release()
      failures.append(failure.about(request.address))
    } catch {
      guard Self.isWorthAnother(error), !isAboutTarget(error) else { throw error }
      failures.append(error.about(request.address))
    }
    for alternative in request.alternatives {
      guard !alternative.alternative.isLowData || failures.contains(where: { $0.code == .networkRestricted }) else { continue }
      if Task.isCancelled { throw .cancelled }
      do throws(CacheError) {
        let spent = account.spent
        return try await load(alternative, account).with { $0.metrics = spent.followed(by: $0.metrics) }
      } catch {
        if error.isCancellation || isAboutTarget(error) { throw error }
        failures.append(error.about(alternative.alternative.url.address))
      }
    }
    if let fallback, let whole = try await whole(fallback) { return whole.with { $0.metrics = account.spent } }
    throw Self.error(of: failures)
  }

  /// Returns the stored response that replaces the original after all alternatives have failed, or `nil` if it was removed.
  ///
  /// The response is copied into the caller's file again, because alternatives may have left bytes in the file.
  private func whole(_ fallback: Exchange) async throws(CacheError) -> Exchange? {
    guard case .file = request.destination else { return fallback }
    let cache = TieredCache(request, resource: fallback.key.resource)
    let candidate = Candidate(key: fallback.key, metadata: fallback.metadata)
    guard let content = try await cache.content(of: candidate, priority) else { return nil }
    return fallback.with { $0.source = content.source }
  }

  /// The request for the original. It does not use constrained networks if there is a low-data alternative.
  private var original: ResolvedRequest {
    guard request.alternatives.contains(where: { $0.alternative.isLowData }) else { return request }
    return request.with { $0.networkAccess.remove(.constrained) }
  }

  private func load(_ alternative: ResolvedAlternative, _ account: TransferMeter) async throws(CacheError) -> Exchange {
    let permitted = alternative.alternative.isLowData ? request : original
    let source = try alternative.source.get()
    let nested = permitted.with { $0.request(source, as: alternative.alternative) }
    report(.otherURL)
    report(.progress(LoadProgress(received: 0)))
    return try await fetch(account.metering(nested))
  }

  private func fetch(_ load: ResolvedRequest) async throws(CacheError) -> Exchange {
    try await performing(load).followingRedirects()
  }

  /// Whether another source may help. It does not help after a refusal, a cancellation, or an error of the configuration.
  private static func isWorthAnother(_ error: CacheError) -> Bool {
    error.permitsAnyStored && error.code != .refused && error.code != .addressRefused
  }

  /// Whether the destination has failed. It would not accept the bytes of another source either.
  func isAboutTarget(_ error: CacheError) -> Bool {
    switch request.destination {
    case .stream, .memory: false
    case .file(let partialFile):
      error.path == partialFile.target && !error.isAboutSourceFile && [.fileSystem, .diskFull].contains(error.code)
    case .store: error.code == .diskFull
    }
  }

  /// Returns the error of the original, with all failures as its underlying error.
  private static func error(of failures: [CacheError]) -> CacheError {
    guard failures.count > 1, var error = failures.first else {
      return failures.first ?? CacheError(.other, reason: "the load has no source")
    }
    let others = failures.count == 2 ? "the alternative" : "\(failures.count - 1) alternatives"
    error.reason += ", and \(others) failed too"
    error.underlying = FailureHistory(failures)
    return error
  }
}

/// Measures the transfers of one load from all its sources, including those that failed.
final class TransferMeter: Sendable {
  private struct State {
    /// The metrics of the responses. Their bodies may still be arriving.
    var responses: [@Sendable () -> TransferMetrics] = []
    /// The number of requests without a response.
    var withoutResponse = 0
  }

  private let clock: any CacheClock
  private let startedAt: Duration
  private let state = Lock(State())

  init(_ clock: any CacheClock) {
    self.clock = clock
    startedAt = clock.uptime
  }

  /// Returns the same request with a downloader that this meter measures.
  func metering(_ load: ResolvedRequest) -> ResolvedRequest {
    guard let downloader = load.downloader else { return load }
    return load.with { $0.downloader = MeteredDownloader(base: downloader, account: self) }
  }

  /// The cost of all transfers so far: counts, and the time since the load began.
  var spent: TransferMetrics {
    let (responses, withoutResponse) = state.withLock { ($0.responses, $0.withoutResponse) }
    // The closures belong to the engine, so they are called outside the lock.
    var spent = responses.reduce(TransferMetrics.nothing) { spent, measured in
      var metrics = measured()
      metrics.attempts = max(1, metrics.attempts)
      return spent.followed(by: metrics)
    }
    spent.attempts += withoutResponse
    if spent.attempts > 0 { spent.total = clock.uptime - startedAt }
    return spent
  }

  fileprivate func note(_ response: DownloadResponse) { state.withLock { $0.responses.append(response.metrics) } }

  fileprivate func note(_ error: CacheError, attempt: Int) {
    guard !Self.unsent.contains(error.code) else { return }
    let sent = max(1, (error.attempt ?? attempt) - attempt + 1)
    state.withLock { $0.withoutResponse += sent }
  }

  /// The errors for which no request was sent.
  private static let unsent: Set<CacheError.Code> = [.networkRestricted, .retryLater, .unsupportedScheme, .invalidURL]
}

/// A downloader whose requests are measured.
private struct MeteredDownloader: Downloader {
  let base: any Downloader
  let account: TransferMeter

  var id: ComponentID { base.id }
  var preferredExecutor: (any TaskExecutor)? { base.preferredExecutor }

  func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    do throws(CacheError) {
      let response = try await base.download(request)
      account.note(response)
      return response
    } catch {
      account.note(error, attempt: request.attempt)
      throw error
    }
  }
}
