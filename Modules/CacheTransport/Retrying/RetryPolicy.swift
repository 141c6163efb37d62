public import CacheCore
public import HTTPTypes

/// The rules for sending a request again: how often, after which failures, and after which wait.
///
/// ```swift
/// var policy = RetryPolicy.standard
/// policy.maximumAttempts = 6
/// policy.statuses.remove(500)
/// policy.onRetry = { failure, delay in print("attempt \(failure.attempt) failed, the next is in \(delay)") }
/// let downloader = SessionDownloader().resuming(policy).retrying(policy)
/// ```
///
/// ``decision(on:fraction:now:timeout:)`` applies the rules without a clock, a random number or a connection.
/// `retrying(_:clock:)` and `resuming(_:clock:)` carry them out. A cancellation is
/// never retried.
public struct RetryPolicy: Sendable {
  /// How many requests may be sent for a resource, the first included; at least one is.
  ///
  /// Counted by `DownloadRequest.attempt`, so that one budget holds for everybody who counts on from there: resumption, retries,
  /// and who starts over.
  public var maximumAttempts: Int
  /// The wait between two requests.
  public var backoff: Backoff
  /// Time for all requests and the waits between them; nil: as long as the attempts take. What would have to be sent later is
  /// not. A request's own `timeout` binds too.
  public var timeLimit: Duration?
  /// The longest `Retry-After` (RFC 9110 §10.2.3) that is waited for. A server that wants more is taken at its word: the answer
  /// is final.
  public var maximumRetryAfter: Duration
  /// The methods that are retried. By default those that do no harm a second time (RFC 9110 §9.2.2).
  public var methods: Set<HTTPRequest.Method>
  /// The statuses that are worth another request.
  public var statuses: Set<Int>
  /// The errors that are worth another request.
  public var errors: Set<CacheError.Code>
  /// A request's body once more, for requests whose body streams: a body is read once. Called before each retry; nil, or a nil
  /// result: such a request is not retried. A body whose bytes are all at hand (`ResourceBody.data`) needs none of this. Held
  /// strongly.
  public var bodyAgain: (@Sendable (DownloadRequest) async throws(CacheError) -> ResourceBody?)?
  /// Decides about a failure before the policy's own rules, or returns `nil` to leave the decision to them. The number of
  /// attempts and the time limits still apply. Held strongly.
  public var judge: (@Sendable (RetryFailure) -> RetryDecision?)?
  /// Called before each retry, with the failure and the wait that follows. A wait for a network may be added. Held strongly.
  public var onRetry: (@Sendable (_ failure: RetryFailure, _ delay: Duration) -> Void)?
  /// Tells whether there is a network. Without one, a retry waits for it, and no attempt is counted.
  public var network: (any NetworkMonitor)?
  /// The longest wait for a network. After it the failure is final.
  public var networkWaitLimit: Duration
  /// From 0 to 1, drawn for each wait; see ``Backoff``.
  public var random: @Sendable () -> Double

  /// Four requests, half a second to 20 seconds between them.
  public static let standard = RetryPolicy()

  /// For who waits and looks on: two more requests within three quarters of a second, for what may be over by then.
  ///
  /// Safe methods alone (RFC 9110 §9.2.1), the statuses 408, 425, 502, 503 and 504, and connections that break. Not what would
  /// last longer than anybody likes to wait (`offline`, `hostNotFound`, `connectionRefused`, `timedOut`, a `Retry-After` of more
  /// than two seconds): there a stored answer is shown at once.
  public static let brief: RetryPolicy = {
    var policy = RetryPolicy(
      maximumAttempts: 3, backoff: Backoff(base: .milliseconds(250), cap: .milliseconds(500)), maximumRetryAfter: .seconds(2))
    policy.methods = [.get, .head, .options]
    policy.statuses = [408, 425, 502, 503, 504]
    policy.errors = [.connectionLost, .truncatedBody, .bodyInterrupted]
    return policy
  }()

  /// One request, and no more.
  public static let never = RetryPolicy(maximumAttempts: 1)

  /// A policy for idempotent requests; the properties have more.
  public init(
    maximumAttempts: Int = 4, backoff: Backoff = Backoff(), timeLimit: Duration? = nil,
    maximumRetryAfter: Duration = .seconds(60)
  ) {
    self.maximumAttempts = maximumAttempts
    self.backoff = backoff
    self.timeLimit = timeLimit
    self.maximumRetryAfter = maximumRetryAfter
    methods = Self.idempotentMethods
    statuses = Self.passingStatuses
    errors = Self.passingErrors
    networkWaitLimit = .seconds(60)
    random = { .random(in: 0...1) }
  }

  /// The methods whose effect is the same however often they are sent (RFC 9110 §9.2.2).
  public static let idempotentMethods: Set<HTTPRequest.Method> = [.get, .head, .options, .put, .delete, .trace]

  /// Statuses that speak of the moment and not of the resource: 408 and 425 (RFC 8470), 429 (RFC 6585), 500, 502, 503, 504.
  public static let passingStatuses: Set<Int> = [408, 425, 429, 500, 502, 503, 504]

  /// Errors that speak of the way to the server and not of the request.
  ///
  /// Not among them: what would end the same way again (`tlsFailure`, `malformedResponse`, `invalidURL`, …), and what somebody
  /// has decided (`cancelled`, `refused`, `addressRefused`, `networkRestricted`, …).
  public static let passingErrors: Set<CacheError.Code> = [
    .connectionLost, .connectionRefused, .hostNotFound, .offline, .timedOut, .truncatedBody, .bodyInterrupted,
  ]
}
