public import CacheCore
public import HTTPTypes

/// The rules for sending a request again: the number of attempts, the failures that are retried, and the delays.
///
/// ```swift
/// var policy = RetryPolicy.standard
/// policy.maximumAttempts = 6
/// policy.statuses.remove(500)
/// policy.onRetry = Delegate { print("attempt \($0.attempt) failed, the next is in \($0.delay)") }
/// let downloader = SessionDownloader().resuming(policy).retrying(policy)
/// ```
///
/// ``decision(on:fraction:now:timeout:)`` applies the rules without a clock, a random number or a connection.
/// `retrying(_:clock:)` and `resuming(_:clock:)` carry them out. A cancellation is never retried. With a number out of its range,
/// requests fail with `CacheError.Code.invalidConfiguration`.
public struct RetryPolicy: Sendable {
  /// The maximum number of requests for a resource, including the first, at least 1.
  ///
  /// `DownloadRequest.attempt` has the count, so resumption, retries and a caller that starts over share one limit.
  public var maximumAttempts: Int
  /// The delay between two requests.
  public var backoff: Backoff
  /// The time limit for all requests and the delays between them, at least zero, or `nil` for none. A retry that would start
  /// later is not sent. The request's own `timeout` also applies.
  public var timeLimit: Duration?
  /// The maximum `Retry-After` (RFC 9110 §10.2.3) that is respected, at least zero. If the server requests a longer delay, the
  /// request is not retried and the response is returned.
  public var maximumRetryAfter: Duration
  /// The methods that are retried. The default is the idempotent methods (RFC 9110 §9.2.2).
  public var methods: Set<HTTPRequest.Method>
  /// The statuses that are retried.
  public var statuses: Set<Int>
  /// The errors that are retried.
  public var errors: Set<CacheError.Code>
  /// Creates the body of a request again before a retry, because a streamed body can be read only once. If it is not set or
  /// returns `nil`, a request with a streamed body is not retried. It is not called for a body in memory (`ResourceBody.data`).
  public var reopenBody = AsyncDelegate<DownloadRequest, ResourceBody?>()
  /// Decides about a failure before the policy's own rules, or returns `nil` to leave the decision to them. The number of
  /// attempts and the time limits still apply.
  public var judge = Delegate<RetryFailure, RetryDecision?>()
  /// Called before each retry, with the failure and its delay. A wait for a network may follow.
  public var onRetry = Delegate<RetryFailure, Void>()
  /// The network monitor, or `nil` for none. Without a network, a retry waits for one and uses up no attempt.
  public var network: (any NetworkMonitor)?
  /// The maximum wait for a network, at least zero. After it, the failure is final.
  public var networkWaitLimit: Duration
  /// A closure that returns the random number from 0 to 1 that ``Backoff`` uses for one delay. The policy retains it.
  public var random: @Sendable () -> Double

  /// The default policy: at most four requests. The delays are random, with maxima from 0.5 to 20 seconds.
  public static let standard = RetryPolicy()

  /// A policy for loads that a user is waiting for: at most two retries, with a total delay of at most 0.75 seconds.
  ///
  /// It retries safe methods only (RFC 9110 §9.2.1), after the statuses 408, 425, 502, 503 and 504 and after lost connections. It
  /// does not retry failures that usually last (`offline`, `hostNotFound`, `connectionRefused`, `timedOut`, a `Retry-After` of
  /// more than two seconds), so that the cache can serve a stale response at once.
  public static let brief: RetryPolicy = {
    var policy = RetryPolicy(
      maximumAttempts: 3, backoff: Backoff(base: .milliseconds(250), cap: .milliseconds(500)), maximumRetryAfter: .seconds(2))
    policy.methods = [.get, .head, .options]
    policy.statuses = [408, 425, 502, 503, 504]
    policy.errors = [.connectionLost, .truncatedBody, .bodyInterrupted]
    return policy
  }()

  /// A policy of one request without a retry.
  public static let never = RetryPolicy(maximumAttempts: 1)

  /// Creates a policy for idempotent requests. Set the properties to change other rules.
  public init(
    maximumAttempts: Int = 4, backoff: Backoff = Backoff(), timeLimit: Duration? = nil,
    maximumRetryAfter: Duration = .seconds(60)
  ) {
    self.maximumAttempts = maximumAttempts
    self.backoff = backoff
    self.timeLimit = timeLimit
    self.maximumRetryAfter = maximumRetryAfter
    methods = Self.idempotentMethods
    statuses = Self.transientStatuses
    errors = Self.transientErrors
    networkWaitLimit = .seconds(60)
    random = { .random(in: 0...1) }
  }

  func check() throws(CacheError) {
    try CacheError.require("maximumAttempts", maximumAttempts, in: 1...)
    try CacheError.require("base", backoff.base, in: .zero...)
    try CacheError.require("cap", backoff.cap, in: .zero...)
    try CacheError.require("multiplier", backoff.multiplier, in: 1...)
    try CacheError.require("timeLimit", timeLimit, in: .zero...)
    try CacheError.require("maximumRetryAfter", maximumRetryAfter, in: .zero...)
    try CacheError.require("networkWaitLimit", networkWaitLimit, in: .zero...)
  }

  /// The idempotent methods (RFC 9110 §9.2.2).
  public static let idempotentMethods = HTTPRequest.Method.idempotent

  /// The statuses of temporary failures: 408 and 425 (RFC 8470), 429 (RFC 6585), 500, 502, 503, 504.
  public static let transientStatuses: Set<Int> = [408, 425, 429, 500, 502, 503, 504]

  /// The transient errors of a connection.
  ///
  /// Persistent errors (`tlsFailure`, `malformedResponse`, `invalidURL`, …) and deliberate refusals (`cancelled`, `refused`,
  /// `addressRefused`, `networkRestricted`, …) are not included.
  public static let transientErrors: Set<CacheError.Code> = [
    .connectionLost, .connectionRefused, .hostNotFound, .offline, .timedOut, .truncatedBody, .bodyInterrupted,
  ]
}

extension RetryPolicy {
  /// Returns whether a request is sent again, and after which delay. A pure function: equal values give equal decisions.
  ///
  /// - Parameters:
  ///   - failure: The last failure.
  ///   - fraction: A random number from 0 to 1. See ``Backoff``.
  ///   - now: The current time, for a `Retry-After` with a date.
  ///   - timeout: The request's own time limit, from the first attempt on, or `nil` for none.
  public func decision(on failure: RetryFailure, fraction: Double, now: Timestamp, timeout: Duration? = nil) -> RetryDecision {
    // Checked before the hook, which must not be called after a cancellation.
    if failure.error?.isCancellation == true { return .giveUp }
    guard failure.attempt < maximumAttempts else { return .giveUp }
    let delay: Duration
    switch judge(failure) ?? nil {
    case .giveUp?: return .giveUp
    case .retry(let after)?: delay = max(after, .zero)
    case nil:
      guard let ruled = ruledDelay(failure, fraction, now) else { return .giveUp }
      delay = ruled
    }
    for limit in [timeLimit, timeout].compactMap({ $0 }) where failure.elapsed + delay >= limit { return .giveUp }
    return .retry(after: delay)
  }

  /// Returns the delay by the rules, or `nil` if they allow no further request.
  private func ruledDelay(_ failure: RetryFailure, _ fraction: Double, _ now: Timestamp) -> Duration? {
    guard methods.contains(failure.request.method) else { return nil }
    let requested: Duration?
    switch failure.outcome {
    case .failure(let error):
      guard errors.contains(error.code) else { return nil }
      requested = error.retryAfter
    case .success(let head):
      guard statuses.contains(head.status.code) else { return nil }
      requested = head.headerFields.retryAfter(receivedAt: now)
    }
    let delay = backoff.delay(after: failure.attempt, fraction: fraction)
    guard let requested else { return delay }
    // Not earlier than the server requests, but later if the back-off delay is longer.
    return requested <= maximumRetryAfter ? max(requested, delay) : nil
  }

  /// Returns whether a status may be retried. Otherwise the response is not a failure.
  func mayRetry(_ head: HTTPResponse) -> Bool { judge.isSet || statuses.contains(head.status.code) }
}

extension RetryPolicy {
  /// Returns the ID of a downloader that applies the policy to `base`. IDs are equal if the rules and the base downloaders are.
  ///
  /// Hooks and network monitors cannot be compared, so a policy with one of them gets a unique ID. The random numbers are
  /// ignored, because they affect only the time of a response.
  func id(of type: Any.Type, resumes: Bool, around base: any Downloader) -> ComponentID {
    guard !reopenBody.isSet, !judge.isSet, !onRetry.isSet, network == nil else { return .unique(type) }
    let rules = [
      "\(maximumAttempts)", "\(backoff.base) \(backoff.cap) \(backoff.multiplier)",
      timeLimit.map { "\($0)" } ?? "", "\(maximumRetryAfter) \(networkWaitLimit)",
      methods.map(\.rawValue).sorted().joined(separator: " "), statuses.sorted().map(String.init).joined(separator: " "),
      errors.map(\.rawValue).sorted().joined(separator: " "), resumes ? "resumes" : "",
    ]
    return ComponentID(type, rules.joined(separator: ","), around: base.id)
  }
}

/// The decision about a failed request.
public enum RetryDecision: Hashable, Sendable {
  /// Send the request again after this delay.
  case retry(after: Duration)
  /// Treat the failure as final.
  case giveUp
}

/// A failed request, as a ``RetryPolicy`` receives it.
public struct RetryFailure: Sendable {
  /// The response, if its status may be retried, or the error of the request or of its body.
  public var outcome: Result<HTTPResponse, CacheError>
  /// The request.
  public var request: HTTPRequest
  /// The number of the request for this resource, counted from 1.
  public var attempt: Int
  /// The time since the first request.
  public var elapsed: Duration
  /// The number of body bytes received so far, if a retry requests only the rest of the body. Otherwise 0.
  public var receivedBytes: Int64 = 0
  /// The delay before the next request. Zero until the policy has decided.
  public var delay: Duration = .zero

  /// Creates a failure for a test of a policy.
  public init(_ outcome: Result<HTTPResponse, CacheError>, request: HTTPRequest, attempt: Int, elapsed: Duration = .zero) {
    self.outcome = outcome
    self.request = request
    self.attempt = attempt
    self.elapsed = elapsed
  }

  /// The error, or `nil` if there was a response.
  public var error: CacheError? {
    if case .failure(let error) = outcome { error } else { nil }
  }

  /// The status of the response, or `nil` if there was none.
  public var status: Int? {
    if case .success(let head) = outcome { head.status.code } else { nil }
  }
}

/// The delay before a request is sent again: exponential, capped, with full jitter.
///
/// The delay is a uniform random value from zero to `base × multiplier^(n-1)`, at most `cap`, where *n* is the number of requests
/// sent so far. Full jitter spreads the retries of clients that failed together.
public struct Backoff: Hashable, Sendable {
  /// The maximum delay after the first request, at least zero.
  public var base: Duration
  /// The maximum delay after any request, at least zero.
  public var cap: Duration
  /// The growth factor of the maximum delay per request, at least 1.
  public var multiplier: Double

  /// Creates a back-off. With a number out of its range, a downloader with the policy fails each request with
  /// `CacheError.Code.invalidConfiguration`. The functions of the back-off use the nearest valid number.
  public init(base: Duration = .milliseconds(500), cap: Duration = .seconds(20), multiplier: Double = 2) {
    self.base = base
    self.cap = cap
    self.multiplier = multiplier
  }

  /// Returns the maximum delay after the given number of requests.
  ///
  /// - Parameter attempt: The number of requests sent so far, counted from 1.
  public func limit(after attempt: Int) -> Duration {
    let (base, cap) = (max(base, .zero), max(cap, .zero))
    guard base > .zero, cap > base else { return min(base, cap) }
    var limit = base
    // A `Duration` traps on overflow, so it is multiplied only while the result stays below the cap.
    for _ in 1..<max(attempt, 1) {
      guard limit / cap * max(multiplier, 1) < 1 else { return cap }
      let next = limit * max(multiplier, 1)
      if next == limit { break }
      limit = next
    }
    return min(limit, cap)
  }

  /// Returns the delay after the given number of requests.
  ///
  /// - Parameters:
  ///   - attempt: The number of requests sent so far, counted from 1.
  ///   - fraction: A random number from 0 to 1.
  public func delay(after attempt: Int, fraction: Double) -> Duration {
    limit(after: attempt) * min(max(fraction.isNaN ? 1 : fraction, 0), 1)
  }
}

/// A monitor that tells whether a network is available, so that a retry waits for one instead of using up its attempts.
///
/// A ``RetryPolicy`` retains its monitor. On Apple platforms use `PathMonitor`. A server needs none.
public protocol NetworkMonitor: Sendable {
  /// Whether a request may succeed now. `true` if the state is unknown.
  var isReachable: Bool { get }
  /// Waits until ``isReachable`` is `true`. Throws as soon as the task is cancelled.
  func waitUntilReachable() async throws(CancellationError)
}

/// The waiting part of a ``NetworkMonitor``: a state and the tasks that wait for it.
///
/// The gate is initially open, because a monitor without a report must not delay requests.
final class ReachabilityGate: Sendable {
  private let state = WatchedState(true)

  var isOpen: Bool { state.read { $0 } }

  func set(isOpen: Bool) { state.update { $0 = isOpen } }

  func pass() async throws(CancellationError) {
    await state.wait { $0 }
    if Task.isCancelled { throw CancellationError() }
  }
}
