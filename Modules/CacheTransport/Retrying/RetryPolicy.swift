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
  public static let idempotentMethods: Set<HTTPRequest.Method> = [.get, .head, .options, .put, .delete, .trace]

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
