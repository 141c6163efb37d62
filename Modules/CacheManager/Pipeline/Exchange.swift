internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// One request on the network and what follows from its answer: this sends it, `Exchange+Answer.swift` carries out what is to be
/// done with the answer.
///
/// What only some answers need stays out of line: an asynchronous call allocates room for everything that has been inlined into
/// it.
struct Exchange: Sendable {
  let hop: Hop
  let candidates: [Candidate]
  let fallback: Int?
  /// The stored answer that the request selects, fresh or not: what a new answer takes the place of.
  let isAbout: Int?

  var load: ResolvedRequest { hop.load }
  var cache: TieredCache { hop.cache }

  /// What was sent, when, and what came back.
  final class Answer: Sendable {
    let sent: HTTPRequest
    let response: DownloadResponse
    let requestTime: Timestamp
    let timeToHead: Duration
    /// By the clock that only durations are measured with.
    let start: Duration
    /// What was sent before, in vain.
    let spent: TransferMetrics
    /// What its body takes of the memory budget.
    let share: MemoryReservation

    init(
      sent: HTTPRequest, response: DownloadResponse, requestTime: Timestamp, timeToHead: Duration, start: Duration,
      spent: TransferMetrics, share: MemoryReservation
    ) {
      (self.sent, self.response, self.requestTime) = (sent, response, requestTime)
      (self.timeToHead, self.start, self.spent, self.share) = (timeToHead, start, spent, share)
    }
  }

  private enum Outcome {
    case ended(LoadOutcome?)
    /// The body broke off, and may be had by asking anew.
    case interrupted(CacheError, spent: TransferMetrics)
  }

  /// - Returns: nil when a 304 confirmed nothing that can be shown: the request has to be sent once more, without conditions.
  func run(_ sent: HTTPRequest) async throws(CacheError) -> LoadOutcome? {
    guard let downloader = load.downloader else {
      return try await standIn(for: unservable(sent), sent: sent, requestTime: load.clock.now)
    }
    var repetition = RetryState()
    while true {
      switch try await ask(downloader, sent, repetition) {
      case .ended(let fetched): return fetched
      case .interrupted(let error, let spent):
        if Task.isCancelled { throw .cancelled }
        repetition.begin(after: error, spending: spent)
        hop.fetch.report(.progress(LoadProgress(received: 0)))
      }
    }
  }

  private func ask(
    _ downloader: any Downloader, _ sent: HTTPRequest, _ repetition: RetryState
  ) async throws(CacheError) -> Outcome {
    // Before there is a place: who makes it may load something through this manager.
    let body = try await hop.step.body?.opened()
    let share = try await load.budget.place(
      hop.fetch.priority, upTo: load.target.isMemory ? load.maximumBodySize : Int64(MemoryBudget.streamed),
      isNested: load.isNested)
    let requestTime = load.clock.now
    let start = load.clock.uptime
    load.observe(.requestSent(url: hop.step.url.address, conditional: isConditional(sent)))
    let answer: Answer
    do throws(CacheError) {
      let response = try await download(
        DownloadRequest(
          head: sent, body: body, priority: hop.fetch.priority, idleTimeout: load.idleTimeout,
          networkAccess: load.networkAccess, mayShare: false, attempt: repetition.attempt), by: downloader)
      answer = Answer(
        sent: sent, response: response, requestTime: requestTime, timeToHead: load.clock.uptime - start, start: start,
        spent: repetition.spent, share: share)
    } catch {
      share.release()
      return .ended(try await standIn(for: error.at(repetition.attempt), sent: sent, requestTime: requestTime))
    }
    load.observe(.responseReceived(url: hop.step.url.address, status: answer.response.head.status.code))
    do throws(CacheError) {
      let verdict = judge(.success(answer.response.head), sent: sent, requestTime: requestTime)
      return .ended(try await carryOut(verdict, answer))
    } catch {
      answer.response.body.source.cancel()
      share.release()
      if repetition.helps(against: error, for: sent.method) { return .interrupted(error, spent: metrics(of: answer)) }
      // The head came and the body did not: as good as no answer.
      let failure = error.at(repetition.attempt)
      guard error.isUnreachable else { throw failure }
      return .ended(try await standIn(for: failure, sent: sent, requestTime: requestTime))
    }
  }

  /// Loads of the downloader's own (of a token, say) are not to wait for this one's place.
  private func download(
    _ request: DownloadRequest, by downloader: any Downloader
  ) async throws(CacheError) -> DownloadResponse {
    try await MemoryBudget.$isInsideLoad.withValue(true) { () async -> Result<DownloadResponse, CacheError> in
      do throws(CacheError) {
        return .success(try await downloader.download(request))
      } catch {
        return .failure(error)
      }
    }.get()
  }

  private func judge(
    _ answer: Result<HTTPResponse, CacheError>, sent: HTTPRequest, requestTime: Timestamp
  ) -> ValidationVerdict {
    // What is stored has nothing to do with what a mirror says.
    let stored = load.standing == .mirror ? [] : candidates.map(\.metadata)
    return Planner(load).judge(
      answer, to: hop.request, sent: sent, fallback: fallback, stored: stored, requestTime: requestTime)
  }

  /// A stored answer in place of one that did not come, where that is allowed.
  @inline(never)
  private func standIn(
    for error: CacheError, sent: HTTPRequest, requestTime: Timestamp
  ) async throws(CacheError) -> LoadOutcome {
    guard !error.isCancellation, !Task.isCancelled else { throw .cancelled }
    if case .serveStale(let index) = judge(.failure(error), sent: sent, requestTime: requestTime),
      let stale = try await stale(index, insteadOf: error)
    {
      return stale
    }
    throw error
  }

  func stale(_ index: Int, insteadOf error: CacheError) async throws(CacheError) -> LoadOutcome? {
    guard let kept = try await cache.read(candidates[index]) else { return nil }
    return hop.usable(kept, candidates[index]).with {
      $0.validation = .failed
      $0.fallbackReason = load.naming(error, at: hop.step.url, after: hop.step.chain)
    }
  }

  private func isConditional(_ sent: HTTPRequest) -> Bool {
    sent.headerFields[.ifNoneMatch] != nil || sent.headerFields[.ifModifiedSince] != nil
  }

  private func unservable(_ sent: HTTPRequest) -> CacheError {
    let scheme = sent.scheme ?? ""
    guard scheme != "http", scheme != "https" else {
      return CacheError(.noDownloader, reason: "not in the cache, and there is no downloader to ask")
    }
    return CacheError(.unsupportedScheme, reason: "unsupported URL scheme '\(scheme)'")
  }

  /// What the answer cost, complete once its body has ended. Where the engine has no measure, the time that passed here is one.
  func metrics(of answer: Answer) -> TransferMetrics {
    var metrics = answer.response.metrics()
    metrics.timeToHead = metrics.timeToHead ?? max(.zero, answer.timeToHead - (metrics.queued ?? .zero))
    metrics.total = metrics.total ?? load.clock.uptime - answer.start
    metrics.attempts = max(1, metrics.attempts)
    return answer.spent.followed(by: metrics)
  }
}

extension CacheError {
  /// The same error, of that attempt unless it tells one already.
  fileprivate func at(_ attempt: Int) -> CacheError {
    guard self.attempt == nil, !isCancellation else { return self }
    var located = self
    located.attempt = attempt
    return located
  }
}
