internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// One load of bytes from start to end. It runs transactions along redirects, and collects the last response at its destination.
///
/// Each redirect is a transaction of its own, so each is cached by its own rules. If the original cannot be loaded, the
/// alternative sources are tried.
struct LoadOperation: Sendable {
  let request: ResolvedRequest
  let priority: LoadPriority
  let report: @Sendable (FlightEvent<LoadOutcome>) -> Void
  let flights: Flights

  /// - Parameter known: The responses that the load has already found in the stores.
  func run(_ known: KnownResponses? = nil) async -> Result<LoadOutcome, CacheError> {
    if let error = request.failures.error(of: request), isSatisfiedByFreshResponse {
      return await performing(request.after(error)).result(known)
    }
    let isNoted = RecentFailures.includes(request)
    let load = isNoted ? performing(request.with { $0.reportInFlight = { [report] in report(.inFlight($0)) } }) : self
    let result = await load.result(known)
    request.failures.note(result, of: request)
    return result
  }

  private func result(_ known: KnownResponses?) async -> Result<LoadOutcome, CacheError> {
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
  private func anyStored(insteadOf error: CacheError) async -> LoadOutcome? {
    guard request.staleFallback == .anyStored, error.permitsAnyStored, !isAboutTarget(error), !Task.isCancelled else {
      return nil
    }
    if case .file(let file) = request.destination { await file.setPartAside(after: error) }
    let stored = try? await performing(request.with { $0.policy = .cacheOnly }).followingRedirects()
    return stored?.with { ($0.validation, $0.fallbackReason) = (.failed, error) }
  }

  /// Whether the request permits a response that the origin has just sent. Otherwise its own fields require a request.
  private var isSatisfiedByFreshResponse: Bool {
    CacheTransaction(
      request, head: request.head, priority: priority, cache: TieredCache(request, resource: request.settings.resource)
    ).isSatisfiedByFreshResponse
  }

  private func performing(_ load: ResolvedRequest) -> LoadOperation {
    LoadOperation(request: load, priority: priority, report: report, flights: flights)
  }

  func followingRedirects(_ known: KnownResponses? = nil) async throws(CacheError) -> LoadOutcome {
    var hop = RedirectHop(request: request.head, url: request.url, body: request.body)
    var earlier: [LoadOutcome] = []
    do throws(CacheError) {
      while true {
        let outcome = try await self.runHop(hop, hop.chain.isEmpty ? known : nil)
        // The interceptor that decides about a redirect may wait for its own loads.
        if request.redirectLimit > 0, RedirectRules.leads(outcome.metadata.response) { outcome.reservation?.release() }
        guard let next = try await next(after: outcome.metadata.response, to: hop) else {
          return try accepted(earlier.isEmpty ? outcome : outcome.following(earlier))
        }
        earlier.append(outcome.with { ($0.data, $0.reservation) = (Data(), nil) })
        hop = next
      }
    } catch {
      throw request.naming(error, at: hop.url, after: hop.chain)
    }
  }

  /// Returns the hop to which a response leads, or `nil` if it is the last response.
  private func next(after response: HTTPResponse, to hop: RedirectHop) async throws(CacheError) -> RedirectHop? {
    guard request.redirectLimit > 0, var next = try RedirectRules.proposal(after: response, to: hop) else { return nil }
    if let interceptor = request.redirectInterceptor {
      guard let decided = try await RedirectRules.decide(next, after: response, to: hop, interceptor) else { return nil }
      next = decided
    }
    try RedirectRules.check(next, from: hop, request)
    return next
  }

  private func accepted(_ outcome: LoadOutcome) throws(CacheError) -> LoadOutcome {
    let metadata = outcome.metadata
    guard request.acceptedStatuses.contains(metadata.response.status.code) else {
      throw .unacceptable(
        metadata.response, received: metadata.responseTime, now: request.clock.now, attempt: outcome.metrics.attempts)
    }
    return outcome
  }

  // MARK: One hop

  private func runHop(_ hop: RedirectHop, _ known: KnownResponses?) async throws(CacheError) -> LoadOutcome {
    // Responses that were found before a removal may have been removed.
    let known = known.flatMap { $0.cache.isBehindRemovals ? nil : $0 }
    let resource = request.resource(of: hop.request, isFirstHop: hop.chain.isEmpty)
    let transaction = CacheTransaction(
      request, head: hop.request, redirectedURL: hop.chain.isEmpty ? nil : hop.url, priority: priority,
      cache: known?.cache ?? TieredCache(request, resource: resource))
    switch try await transaction.decide(known?.result) {
    case .stored(let response, nil): return makeOutcome(response, of: hop)
    case .stored(let response, let (sent, originRequest)?) where request.outage != nil:
      // No request follows, so the stored response is the final one, with the outage as its reason.
      response.reservation?.release()
      response.body.source.cancel()
      return try await sendToOrigin(sent, originRequest, hop)
    case .stored(let response, let (sent, originRequest)?):
      let outcome = makeOutcome(response, of: hop)
      guard request.destination.isMemory || request.writes.contains(.disk) else { return outcome }
      if originRequest.hasFallback { report(.foundFallback) }
      announce(outcome)
      return try await revalidate(sent, originRequest, hop)
    case .requestOrigin(let sent, let originRequest): return try await sendToOrigin(sent, originRequest, hop)
    case .generated(let response):
      guard response.status.code == 504 else { throw .unacceptable(response, now: request.clock.now) }
      throw .onlyCached
    }
  }

  /// Revalidates a response that waiters have already received. If another request is revalidating the same response, waits for
  /// it and looks into the stores again.
  @inline(never)
  private func revalidate(
    _ sent: HTTPRequest, _ originRequest: OriginRequest, _ hop: RedirectHop
  ) async throws(CacheError) -> LoadOutcome {
    guard request.destination.isMemory else { return try await sendToOrigin(sent, originRequest, hop) }
    switch flights.leadOrJoin(originRequest.cache.revalidationKey, id: request.id, priority, { Waiter<Flights.Done>(priority) }) {
    case .lead(let flight):
      defer { flight.end(.success(Flights.Done())) }
      return try await sendToOrigin(sent, originRequest, hop)
    case .wait(let waiter, _):
      _ = await waiter.ending()
      if Task.isCancelled { throw .cancelled }
      let found = try await originRequest.cache.lookUp(hop.request)
      if case .use(_, nil) = found.plan, case .stored(let response, _) = try await originRequest.transaction.decide(found) {
        return makeOutcome(response, of: hop)
      }
      return try await sendToOrigin(sent, originRequest, hop)
    }
  }

  private func sendToOrigin(_ sent: HTTPRequest, _ originRequest: OriginRequest, _ hop: RedirectHop) async throws(CacheError)
    -> LoadOutcome
  {
    if originRequest.hasFallback { report(.foundFallback) }
    let timer = showCached(originRequest, hop)
    defer { timer?.cancel() }
    var response = try await originRequest.send(sent, hop.body.map { .reopened($0) } ?? .none)
    while true {
      guard let recording = response.recording, let received = response.received else { return makeOutcome(response, of: hop) }
      let length = recording.length
      func progress(_ received: Int64) { report(.progress(LoadProgress(received: received, expected: length))) }
      if let recorded = recording.recordWithoutWaiting(progress) { return makeOutcome(response, recorded, of: hop) }
      do throws(CacheError) {
        return makeOutcome(response, try await recording.record(progress), of: hop)
      } catch {
        if received.retry.helps(against: error, for: received.sent.method) { report(.progress(LoadProgress(received: 0))) }
        response = try await originRequest.recover(from: error, received)
      }
    }
  }

  /// Gives waiters a stored response before the final one, unless it is a redirect or comes from an alternative.
  private func announce(_ stored: LoadOutcome) {
    // The load must not wait for the memory of this response, which depends on the waiters.
    stored.reservation?.release()
    guard request.role == .original, request.isResult(stored.metadata.response) else { return }
    // A load into a file ends with this response. The next one is written to the store alone.
    if case .file(let file) = request.destination { file.seal() }
    report(.stale(stored))
  }

  /// A timer that gives waiters the stored response if the network is slow (`showCachedAfter`).
  private func showCached(_ originRequest: OriginRequest, _ hop: RedirectHop) -> Task<Void, Never>? {
    // A file is written once, with one response.
    guard case .revalidate(_, let delay?) = request.policy, let fallback = originRequest.fallback,
      request.destination.isMemory, request.outage == nil
    else {
      return nil
    }
    return Task {
      guard (try? await request.clock.sleep(for: delay)) != nil else { return }
      guard let stored = try? await originRequest.transaction.stored(originRequest.candidate(fallback)), !Task.isCancelled else {
        return
      }
      announce(makeOutcome(stored, of: hop))
    }
  }

  // MARK: Outcomes

  private func makeOutcome(_ response: TransactionResponse, of hop: RedirectHop) -> LoadOutcome {
    makeOutcome(response, .init(data: response.body.data, count: 0), of: hop)
  }

  private func makeOutcome(
    _ response: TransactionResponse, _ recording: RecordingBody.Recording, of hop: RedirectHop
  ) -> LoadOutcome {
    let received = response.received
    var stored = response.stored ?? notStored(response, recording.count, hop)
    // A copy under another variant does not have the metadata that was confirmed.
    if let metadata = recording.metadata, response.validation != .notModified { stored.metadata = metadata }
    return LoadOutcome(
      .init(
        data: recording.data ?? Data(), metadata: stored.metadata, key: stored.key,
        url: received == nil ? request.origin(of: stored.metadata, for: hop.request, at: hop.url) : hop.url,
        redirects: hop.chain, source: response.source, validation: response.validation,
        metrics: received?.metrics(at: request.clock.uptime) ?? .nothing, isShareable: response.isShareable,
        fallbackReason: response.fallbackReason.map { request.naming($0, at: hop.url, after: hop.chain) },
        isStored: response.stored != nil, isBodyLeft: response.isBodyLeft, encoded: response.encoded,
        reservation: response.reservation))
  }

  /// The metadata of a response that is not stored.
  private func notStored(_ response: TransactionResponse, _ count: Int64, _ hop: RedirectHop) -> Candidate {
    var head = hop.request
    head.headerFields = [:]
    let now = request.clock.now
    let metadata = StoredMetadata(
      request: head, response: response.head, requestTime: response.received?.requestTime ?? now, responseTime: now,
      bodyLength: count, revision: .random(),
      freshness: Freshness(generatedAt: now - (response.head.headerFields.statedAge ?? .zero), freshUntil: now))
    return Candidate(
      key: CacheKey(resource: request.resource(of: hop.request, isFirstHop: hop.chain.isEmpty)), metadata: metadata)
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

/// Loads the original and then its alternatives in order, until one of them succeeds.
extension LoadOperation {
  func tryingAlternatives() async throws(CacheError) -> LoadOutcome {
    var failures: [CacheError] = []
    var fallback: LoadOutcome?
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
  private func whole(_ fallback: LoadOutcome) async throws(CacheError) -> LoadOutcome? {
    guard case .file = request.destination else { return fallback }
    let cache = TieredCache(request, resource: fallback.key.resource)
    let candidate = Candidate(key: fallback.key, metadata: fallback.metadata)
    guard let content = try await cache.content(of: candidate) else { return nil }
    return fallback.with { $0.source = content.source }
  }

  /// The request for the original. It does not use constrained networks if there is a low-data alternative.
  private var original: ResolvedRequest {
    guard request.alternatives.contains(where: { $0.alternative.isLowData }) else { return request }
    var parts = request.settings
    parts.networkAccess.remove(.constrained)
    return ResolvedRequest(parts)
  }

  private func load(_ alternative: ResolvedAlternative, _ account: TransferMeter) async throws(CacheError) -> LoadOutcome {
    let permitted = alternative.alternative.isLowData ? request : original
    let nested = ResolvedRequest(permitted.settings.requesting(try alternative.source.get(), as: alternative.alternative))
    report(.progress(LoadProgress(received: 0)))
    return try await fetch(account.metering(nested))
  }

  private func fetch(_ load: ResolvedRequest) async throws(CacheError) -> LoadOutcome {
    try await performing(load).followingRedirects()
  }

  /// Whether another source may help. It does not help after a refusal, a cancellation, or an error of the configuration.
  private static func isWorthAnother(_ error: CacheError) -> Bool {
    let decided: [CacheError.Code] = [
      .cancelled, .notCached, .closed, .refused, .addressRefused, .invalidConfiguration, .misuse, .unscripted,
    ]
    return !decided.contains(error.code)
  }

  /// Whether the destination has failed. It would not accept the bytes of another source either.
  private func isAboutTarget(_ error: CacheError) -> Bool {
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
