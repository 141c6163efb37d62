internal import CacheCore
internal import Synchronization

/// The latest failures of loads whose policy has an interval (`LoadPolicy.revalidate(atMostEvery:)`). A failed request counts as
/// one request of the interval, although it has stored nothing.
final class RecentFailures: Sendable {
  /// Loads that would send equal requests through the same components.
  private struct Subject: Hashable {
    /// A key, because keys are compared byte by byte.
    let resource: CacheKey
    /// A hash of the request. The request itself may contain credentials.
    let request: Int
    let components: RequestSettings.Components
    /// The settings that decide whether a response is a failure.
    let acceptedStatuses: AcceptedStatuses
    let limits: [Duration?]
    let maximumBodySize: Int64
    let redirectLimit: Int
    let allowsInsecureRedirects: Bool
    let networkAccess: NetworkAccess
    let alternatives: [AlternativeSource]

    init(_ load: ResolvedRequest) {
      let load = load.settings
      resource = CacheKey(resource: load.resource)
      request = load.head.hashValue
      var components = load.components
      components.others.observer = nil
      self.components = components
      acceptedStatuses = load.acceptedStatuses
      limits = [load.timeout, load.idleTimeout]
      maximumBodySize = load.maximumBodySize
      (redirectLimit, allowsInsecureRedirects) = (load.redirectLimit, load.allowsInsecureRedirects)
      networkAccess = load.networkAccess
      alternatives = load.alternatives.map(\.alternative)
    }
  }

  private struct Failure {
    let error: CacheError
    let uptime: Duration
    let logPosition: Int
  }

  /// The minimum number of failures to remember. A forgotten failure permits another request within its interval.
  static let minimumCount = 1_000

  private let failures = Lock<[Subject: Failure]>([:])
  /// Whether there may be a failure. Usually there is none, and the lock is not needed.
  private let hasFailures = Atomic(false)

  /// Returns the error of the latest request, unless a request may be sent: its interval has passed, it was not received, or the
  /// resource was removed in the meantime. The delay of `Retry-After` has become shorter since then.
  func error(of load: ResolvedRequest) -> CacheError? {
    guard case .revalidate(let interval?, _) = load.policy, hasFailures.load(ordering: .acquiring) else { return nil }
    let subject = Subject(load)
    guard let failure = failures.withLock({ $0[subject] }), load.clock.uptime - failure.uptime < interval,
      !load.invalidations.mayHaveMatched(load.settings.resource, since: failure.logPosition)
    else { return nil }
    return failure.error.reported(after: load.clock.uptime - failure.uptime)
  }

  /// Notes the result of a load that was allowed to send requests. Any response of the origin ends the failure.
  func note(_ result: Result<Exchange, CacheError>, of load: ResolvedRequest) {
    switch result {
    case .failure(let error): note(error, of: load)
    case .success(let outcome):
      if let error = outcome.fallbackReason { return note(error, of: load) }
      guard outcome.source != .memory, outcome.source != .disk, hasFailures.load(ordering: .acquiring) else { return }
      let subject = Subject(load)
      // The error may hold the last reference to a caller's object, so it is released outside the lock.
      _ = failures.withLock { failures in
        let former = failures.removeValue(forKey: subject)
        if failures.isEmpty { hasFailures.store(false, ordering: .releasing) }
        return former
      }
    }
  }

  /// Notes the error of a load whose policy has an interval, if the origin may have received the request.
  func note(_ error: CacheError, of load: ResolvedRequest) {
    guard Self.includes(load), Self.received.contains(error.code) else { return }
    let failure = Failure(error: error, uptime: load.clock.uptime, logPosition: load.invalidations.current)
    let subject = Subject(load)
    // The errors that are replaced or forgotten are released outside the lock.
    _ = failures.withLock { failures -> (Failure?, [Failure]) in
      let former = failures.updateValue(failure, forKey: subject)
      hasFailures.store(true, ordering: .releasing)
      guard failures.count >= 2 * Self.minimumCount else { return (former, []) }
      let oldest = failures.sorted { $0.value.uptime < $1.value.uptime }.prefix(Self.minimumCount)
      for (subject, _) in oldest { failures[subject] = nil }
      return (former, oldest.map(\.value))
    }
  }

  /// Whether failures of the load are noted. The downloader of a load with hooks is unique, so its failures apply to no other.
  static func includes(_ load: ResolvedRequest) -> Bool {
    guard case .revalidate(_?, _) = load.policy, !load.hasHooks else { return false }
    return true
  }

  private static let received: Set<CacheError.Code> = [
    .unacceptableStatus, .timedOut, .connectionLost, .malformedResponse, .truncatedBody, .bodyInterrupted,
    .damagedContentCoding, .bodyTooLarge, .tooManyRedirects, .redirectRefused,
  ]
}
