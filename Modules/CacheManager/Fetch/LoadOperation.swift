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
    if let error = request.failures.error(of: request), Fetch(request, priority).isSatisfiedByFreshResponse {
      return await performing(request.after(error)).result(known)
    }
    let isNoted = RecentFailures.includes(request)
    let load = isNoted ? performing(request.with { $0.reportInFlight = { [report] in report(.inFlight($0)) } }) : self
    let result = await load.result(known)
    request.failures.note(result, of: request)
    return result
  }

  private func result(_ known: KnownResponses?) async -> Result<Exchange, CacheError> {
    do throws(CacheError) {
      return .success(request.alternatives.isEmpty ? try await followingRedirects(known) : try await tryingAlternatives())
    } catch {
      let error = error.about(request.address)
      return await anyStored(insteadOf: error).map { .success($0) } ?? .failure(error)
    }
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
        let exchange = try await fetch(hop, hop == nil ? known : nil)
        guard request.redirectLimit > 0, RedirectRules.leads(exchange.metadata.response) else {
          return try accepted(exchange, after: earlier)
        }
        // The interceptor that decides about a redirect may wait for its own loads.
        exchange.reservation?.release()
        guard let next = try await next(after: exchange.metadata.response, to: hop) else {
          return try accepted(exchange, after: earlier)
        }
        earlier.append(exchange.with { ($0.body, $0.reservation, $0.received) = (.none, nil, nil) })
        hop = next
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

  private func accepted(_ exchange: Exchange, after earlier: [Exchange]) throws(CacheError) -> Exchange {
    let metadata = exchange.metadata
    guard request.acceptedStatuses.contains(metadata.response.status.code) else {
      throw .unacceptable(
        metadata.response, received: metadata.responseTime, now: request.clock.now, attempt: exchange.metrics.attempts)
    }
    return earlier.isEmpty ? exchange : exchange.following(earlier)
  }

  // MARK: One hop

  private func fetch(_ hop: RedirectHop?, _ known: KnownResponses?) async throws(CacheError) -> Exchange {
    // Responses that were found before a removal may have been removed.
    let known = known.flatMap { $0.cache.isBehindRemovals ? nil : $0 }
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
    _ = try await flights.output(of: fetch.cache.revalidationKey, for: request.id, priority) { () throws(CacheError) in
      do throws(CacheError) { led = .success(try await collect(sent, fetch)) } catch { led = .failure(error) }
      return Flights.Done()
    }
    if let led { return try led.get() }
    let found = try await fetch.cache.lookUp(fetch.head)
    var again = fetch
    if case .use(_, nil) = found.plan, case .use(let response, _) = try await again.decide(found) { return response }
    return try await collect(sent, fetch)
  }

  /// Sends the request, and collects the body of the response. If the body breaks off, sends the request again or uses a stored
  /// response.
  private func collect(_ sent: HTTPRequest, _ fetch: Fetch) async throws(CacheError) -> Exchange {
    if fetch.hasFallback { report(.foundFallback) }
    let timer = showCached(fetch)
    defer { timer?.cancel() }
    var exchange = try await fetch.send(sent, (fetch.hop.map(\.body) ?? request.body).map { .reopened($0) } ?? .none)
    while true {
      if let recording = exchange.recording, let received = exchange.received {
        let length = recording.length
        func progress(_ received: Int64) { report(.progress(LoadProgress(received: received, expected: length))) }
        do throws(CacheError) {
          if let recorded = recording.recordWithoutWaiting(progress) {
            exchange.complete(with: recorded)
          } else {
            exchange.complete(with: try await recording.record(progress))
          }
        } catch {
          if received.retry.helps(against: error, for: received.sent.method) { report(.progress(LoadProgress(received: 0))) }
          exchange = try await fetch.recover(from: error, received)
          continue
        }
      }
      if let received = exchange.received { exchange.metrics = received.metrics(at: request.clock.uptime) }
      if let reason = exchange.fallbackReason { exchange.fallbackReason = named(reason, fetch.hop) }
      return exchange
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

/// The result of the lookup that a load made before its operation started.
struct KnownResponses: Sendable {
  var cache: TieredCache
  var result: LookupResult
  /// The ``Flights/endPosition`` at which the result is valid.
  var position: Int
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
