internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// One load of bytes from start to end: what a coalesced load does.
///
/// The validator decides, this carries out: it looks into the stores, asks the network, stores, and follows redirects hop by hop,
/// so that each hop is cached by its own rules. Where the original can't be had, `Fetch+Alternatives.swift` goes on.
struct Fetch: Sendable {
  let load: ResolvedRequest
  let priority: LoadPriority
  let report: @Sendable (CoalescedLoadEvent<LoadOutcome>) -> Void
  let revalidations: RevalidationTable

  func run() async -> Result<LoadOutcome, CacheError> {
    do throws(CacheError) {
      return .success(load.alternatives.isEmpty ? try await followingRedirects() : try await tryingAlternatives())
    } catch {
      return .failure(error.about(load.address))
    }
  }

  func followingRedirects() async throws(CacheError) -> LoadOutcome {
    var step = RedirectHop(request: load.head, url: load.url, body: load.body)
    var metrics = TransferMetrics.nothing
    var timeToHead: Duration?
    var isShareable = true
    do throws(CacheError) {
      while true {
        let fetched = try await Hop(fetch: self, step: step).run()
        // A chain is as private as its most private hop, and costs what all of them cost.
        isShareable = isShareable && fetched.isShareable
        metrics = metrics.followed(by: fetched.metrics)
        timeToHead = fetched.timeToHead ?? timeToHead
        // Who decides about a redirect may wait for loads of its own.
        if load.redirectLimit > 0, RedirectRules.leads(fetched.metadata.response) { fetched.share?.release() }
        guard let next = try await next(after: fetched.metadata.response, to: step) else {
          guard !step.chain.isEmpty else { return try accepted(fetched) }
          return try accepted(
            fetched.with {
              $0.isShareable = isShareable
              $0.metrics = metrics
              $0.metrics.redirects += step.chain.count
              $0.timeToHead = timeToHead
            })
        }
        step = next
      }
    } catch {
      throw load.naming(error, at: step.url, after: step.chain)
    }
  }

  /// Where an answer leads, unless it is the load's last.
  private func next(after response: HTTPResponse, to step: RedirectHop) async throws(CacheError) -> RedirectHop? {
    guard load.redirectLimit > 0, var next = try RedirectRules.proposal(after: response, to: step) else { return nil }
    if let handler = load.redirectHandler {
      guard let decided = try await RedirectRules.decide(next, after: response, to: step, handler) else { return nil }
      if Task.isCancelled { throw .cancelled }
      next = decided
    }
    try RedirectRules.check(next, from: step, load)
    return next
  }

  private func accepted(_ fetched: LoadOutcome) throws(CacheError) -> LoadOutcome {
    let status = fetched.metadata.response.status
    guard load.acceptedStatuses.contains(status.code) else {
      throw Self.unacceptable(status, attempt: fetched.metrics.attempts)
    }
    return fetched
  }

  /// - Parameter attempt: how many requests were sent for the answer; 0: none.
  static func unacceptable(_ status: HTTPResponse.Status, attempt: Int) -> CacheError {
    let phrase = status.reasonPhrase.isEmpty ? phrases[status.code] ?? "" : status.reasonPhrase
    let words = phrase.isEmpty ? "" : " \(phrase)"
    return CacheError(
      .unacceptableStatus, reason: "the server answered \(status.code)\(words)", status: status.code,
      attempt: attempt > 0 ? attempt : nil)
  }

  /// What the statuses mean that people meet (RFC 9110 §15): HTTP/2 has no reason phrases, and not every engine tells them.
  private static let phrases: [Int: String] = {
    let met: [HTTPResponse.Status] = [
      .movedPermanently, .found, .seeOther, .notModified, .temporaryRedirect, .permanentRedirect, .badRequest, .unauthorized,
      .forbidden, .notFound, .methodNotAllowed, .notAcceptable, .requestTimeout, .conflict, .gone, .tooManyRequests,
      .internalServerError, .notImplemented, .badGateway, .serviceUnavailable, .gatewayTimeout,
    ]
    return Dictionary(met.map { ($0.code, $0.reasonPhrase) }, uniquingKeysWith: { first, _ in first })
  }()
}
