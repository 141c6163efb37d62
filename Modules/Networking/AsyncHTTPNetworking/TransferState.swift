#if AsyncHTTP
internal import CacheCore
internal import NIOCore
internal import NIOHTTP1

/// The state machine of one transfer.
///
/// A value without a lock, a thread or a clock. Times are passed in, and work to be done outside the lock is returned as
/// ``Consequences``.
struct TransferState {
  private enum Stage {
    /// The request has not been passed to the client.
    case queued
    case awaitingHead
    case receiving
    case complete
    case failed(CacheError)
  }

  /// The work to be done outside the lock.
  struct Consequences {
    /// The waiting reader, which checks the state again.
    var wake: Transfer.Waiter?
    var demand: EventLoopPromise<Void>?
    var stop: (@Sendable () -> Void)?
    /// The time of the next call to ``TransferState/checkTimeouts(at:)``, unless an earlier one was returned.
    var due: NIODeadline?
    var end: End?
  }

  /// Whether a reader must wait.
  enum Wait {
    /// The reader will be woken.
    case waiting
    /// An event is available.
    case ready
    /// Another task is waiting.
    case taken
  }

  /// The end of the transfer.
  struct End {
    /// Whether the request was passed to the client.
    var hadSlot: Bool
  }

  /// The received part of a response.
  struct Progress {
    var hasHead = false
    var received: Int64 = 0
    var expected: Int64?
  }

  private let limits: TransferLimits
  private var stage = Stage.queued
  private(set) var progress = Progress()

  private var head: TransferHead?
  /// The waiting reader: first for the head, then for bytes.
  private var waiter: Transfer.Waiter?
  private var unread = Chunk()
  /// Whether the reader gets the head only with the whole body.
  private var isCollecting = false
  /// The promise that the sender waits for while too many bytes are unread.
  private var demand: EventLoopPromise<Void>?
  private var stop: (@Sendable () -> Void)?

  private let calledAt: NIODeadline
  private var startedAt: NIODeadline?
  private var lastActivity: NIODeadline
  private var isSent = false
  private var isProducing = false
  private var progressOfQueue: (@Sendable () -> NIODeadline)?

  private(set) var metrics = TransferMetrics()

  /// - Parameters:
  ///   - limits: The limits of the transfer.
  ///   - calledAt: The time of the call.
  ///   - nameLookup: The duration of an earlier name lookup, or `nil` if there was none.
  init(limits: TransferLimits, calledAt: NIODeadline, nameLookup: Duration? = nil) {
    self.limits = limits
    self.calledAt = calledAt
    lastActivity = calledAt
    metrics.nameLookup = nameLookup
  }

  private var hasEnded: Bool {
    switch stage {
    case .complete, .failed: true
    case .queued, .awaitingHead, .receiving: false
    }
  }

  // MARK: The reader

  /// Cancels the transfer. The reader of a complete body with unread bytes gets the error too.
  mutating func cancel() -> Consequences {
    if case .complete = stage, !unread.isEmpty { stage = .failed(.cancelled) }
    unread = Chunk()
    return fail(.cancelled)
  }

  /// Returns the head or an error, or `nil` while there is neither. The whole body comes with the head if it has arrived and may
  /// be collected.
  mutating func takeResponse() -> Result<(TransferHead, body: Chunk?), CacheError>? {
    guard let response else { return nil }
    guard case .complete = stage, limits.collectUpTo > 0, unread.count <= limits.collectUpTo else {
      return response.map { ($0, body: nil) }
    }
    return response.map { ($0, body: takeUnread()) }
  }

  /// The head or an error, or `nil` while the reader must wait.
  var response: Result<TransferHead, CacheError>? {
    switch stage {
    case .queued, .awaitingHead: nil
    case .receiving where isCollecting: nil
    // A body that failed before its first read still has a head.
    case .failed(let error): head.map { error.isCancellation ? .failure(error) : .success($0) } ?? .failure(error)
    case .receiving, .complete: head.map { .success($0) } ?? .failure(Self.headless)
    }
  }

  mutating func awaitHead(_ waiter: Transfer.Waiter) -> Wait {
    guard response == nil else { return .ready }
    self.waiter = waiter
    return .waiting
  }

  /// Returns the available bytes, or `nil` if the reader must wait.
  mutating func take(at now: NIODeadline) -> (Result<Chunk?, CacheError>?, Consequences) {
    switch stage {
    // Bytes received before the failure are returned first: a reader that resumes a body needs all of them.
    case .failed(let error) where unread.isEmpty: return (.failure(error), Consequences())
    case .complete where unread.isEmpty: return (.success(nil), Consequences())
    case _ where unread.isEmpty || waiter != nil: return (nil, Consequences())
    default: break
    }
    let demand = releaseDemand()
    // The server could not send while the reader was slow, so its idle time starts again.
    if demand != nil { lastActivity = now }
    return (.success(takeUnread()), Consequences(demand: demand))
  }

  mutating func awaitBytes(_ waiter: Transfer.Waiter, at now: NIODeadline) -> (Wait, Consequences) {
    guard self.waiter == nil else { return (.taken, Consequences()) }
    guard !hasEnded, unread.isEmpty else { return (.ready, Consequences()) }
    self.waiter = waiter
    lastActivity = max(lastActivity, now)
    return (.waiting, Consequences(due: dueTime))
  }

  // MARK: The request

  mutating func enqueue(progress: @escaping @Sendable () -> NIODeadline, at now: NIODeadline) -> Consequences {
    guard case .queued = stage else { return Consequences() }
    progressOfQueue = progress
    lastActivity = now
    return Consequences(due: dueTime)
  }

  mutating func start(at now: NIODeadline) -> (Bool, Consequences) {
    guard case .queued = stage else { return (false, Consequences()) }
    stage = .awaitingHead
    startedAt = now
    lastActivity = now
    if progressOfQueue != nil { metrics.queued = Duration(now - calledAt) }
    progressOfQueue = nil
    // Until the request is sent, the client's connect timeout applies. The total limit applies from the call.
    return (true, Consequences(due: limits.total == nil ? nil : dueTime))
  }

  /// Stores the closure that cancels an attempt. If a later attempt has already started on another thread, its closure stays.
  mutating func launched(attempt: Int = 1, _ stop: @escaping @Sendable () -> Void) -> Consequences {
    switch stage {
    case .failed: return Consequences(stop: stop)
    case .complete: return Consequences()
    case .queued, .awaitingHead, .receiving:
      if attempt == metrics.attempts { self.stop = stop }
      return Consequences()
    }
  }

  mutating func sent(overReusedConnection isReused: Bool, at now: NIODeadline) -> Consequences {
    isSent = true
    metrics.isReusedConnection = isReused ? true : nil
    lastActivity = now
    return Consequences(due: dueTime)
  }

  /// Returns whether a failed request is to be sent again. It is if the server had closed the reused connection, which is not
  /// known before use. A request that failed before it was sent met a closing connection.
  mutating func sendAgain(after error: any Error) -> Bool {
    let attempts = isSent ? limits.attempts : max(limits.attempts, 3)
    let isReused = error is LostReusedConnection || !limits.reportsLosses && metrics.isReusedConnection == true
    guard case .awaitingHead = stage, metrics.attempts < attempts, !isSent || isReused,
      CacheError(clientError: error).code == .connectionLost, !(error is HTTPParserError)
    else { return false }
    metrics.attempts += 1
    metrics.isReusedConnection = nil
    isSent = false
    stop = nil
    return true
  }

  mutating func produces(_ isProducing: Bool, at now: NIODeadline) -> Consequences {
    self.isProducing = isProducing
    // The client requests the body only when it has a connection.
    isSent = true
    lastActivity = now
    return Consequences(due: dueTime)
  }

  // MARK: The response

  mutating func receive(_ head: TransferHead, at now: NIODeadline) -> Consequences {
    guard case .awaitingHead = stage else { return Consequences() }
    stage = .receiving
    lastActivity = now
    self.head = head
    progress.hasHead = true
    progress.expected = head.bodyLength
    metrics.protocolName = head.protocolName
    metrics.timeToHead = startedAt.map { Duration(now - $0) }
    isCollecting = head.response.isCollected(upTo: limits.collectUpTo, length: head.bodyLength)
    guard isCollecting else { return Consequences(wake: releaseWaiter()) }
    unread = Chunk(collecting: Int(head.bodyLength ?? 0))
    return Consequences(due: dueTime)
  }

  mutating func receive(
    _ bytes: ByteBuffer, at now: NIODeadline, makePromise: () -> EventLoopPromise<Void>
  ) -> (EventLoopFuture<Void>?, Consequences) {
    guard case .receiving = stage, bytes.readableBytes > 0 else { return (nil, Consequences()) }
    lastActivity = now
    progress.received += Int64(bytes.readableBytes)
    metrics.bytesOnWire = progress.received
    metrics.bytesDecoded = progress.received
    if let expected = progress.expected, progress.received > expected {
      return (nil, fail(.overlong(expected: expected)))
    }
    unread.append(bytes)
    // The end follows the last byte at once, so nothing waits and the reader is woken once for both.
    guard !isCollecting, progress.received != progress.expected else { return (nil, Consequences()) }
    var held: EventLoopFuture<Void>?
    if unread.count >= limits.unreadBytes {
      let promise = makePromise()
      demand = promise
      held = promise.futureResult
    }
    return (held, Consequences(wake: releaseWaiter()))
  }

  mutating func finish(at now: NIODeadline) -> Consequences {
    guard !hasEnded else { return Consequences() }
    guard case .receiving = stage else { return fail(Self.headless) }
    if let expected = progress.expected, progress.received < expected {
      return fail(.truncated(received: progress.received, expected: expected))
    }
    stage = .complete
    metrics.total = Duration(now - calledAt)
    var consequences = settle()
    consequences.stop = nil
    return consequences
  }

  mutating func fail(_ error: CacheError) -> Consequences {
    guard !hasEnded else { return Consequences() }
    stage = .failed(error)
    return settle()
  }

  private mutating func settle() -> Consequences {
    let consequences = Consequences(
      wake: releaseWaiter(), demand: releaseDemand(), stop: stop, end: End(hadSlot: startedAt != nil))
    (stop, progressOfQueue) = (nil, nil)
    return consequences
  }

  private mutating func releaseWaiter() -> Transfer.Waiter? {
    defer { waiter = nil }
    return waiter
  }

  private mutating func releaseDemand() -> EventLoopPromise<Void>? {
    defer { demand = nil }
    return demand
  }

  private mutating func takeUnread() -> Chunk {
    defer { unread = Chunk() }
    return unread
  }

  private static var headless: CacheError { CacheError(.malformedResponse, reason: "the response has no head") }

  // MARK: Time

  /// Whether the transfer waits for the peer. A reader that requests nothing, or a request body that is not ready, is not the
  /// server's silence.
  private var waitsForPeer: Bool {
    switch stage {
    case .queued: progressOfQueue != nil
    // Before the request is sent, the client's connect timeout applies.
    case .awaitingHead: isSent && !isProducing
    case .receiving: isCollecting || waiter != nil
    case .complete, .failed: false
    }
  }

  private var dueTime: NIODeadline? {
    let deadline = limits.total.map { calledAt + $0 }
    guard waitsForPeer else { return deadline }
    let silence = max(lastActivity, progressOfQueue?() ?? lastActivity) + limits.idle
    return deadline.map { min($0, silence) } ?? silence
  }

  /// Fails the transfer if it has timed out. Otherwise returns the time of the next check.
  mutating func checkTimeouts(at now: NIODeadline) -> Consequences {
    guard !hasEnded else { return Consequences() }
    if let total = limits.total, now >= calledAt + total { return fail(limits.totalPassed(total)) }
    if waitsForPeer, let dueTime, now >= dueTime {
      if case .queued = stage { return fail(limits.queuePassed) }
      return fail(limits.idlePassed(hasHead: progress.hasHead))
    }
    return Consequences(due: dueTime)
  }
}

/// The time limits of a transfer and the limit of its unread bytes.
struct TransferLimits {
  /// The maximum time that the peer may be silent while the transfer waits for it.
  var idle: TimeAmount
  /// The maximum time for head and body together, measured from the call, or `nil` for no limit.
  var total: TimeAmount?
  /// The number of unread bytes at which the transfer stops requesting more. One more chunk of at most 64 KiB may be in transit.
  var unreadBytes = 256 * 1024

  /// The largest body, in bytes, that the reader gets together with the head, or 0 to wake it at the head.
  var collectUpTo = 0

  /// The maximum number of attempts for a request. Each reused connection to a host may already have been closed by the server.
  var attempts = 1
  /// Whether the connection is certainly one that reports a ``LostReusedConnection``.
  var reportsLosses = false

  /// The error for a silent server.
  func idlePassed(hasHead: Bool) -> CacheError {
    CacheError(.timedOut, reason: "no data arrived for \(Duration(idle).inSeconds)\(hasHead ? " during the body" : "")")
  }

  /// The error for a request that got no connection.
  var queuePassed: CacheError {
    CacheError(.timedOut, reason: "no connection to the host became available for \(Duration(idle).inSeconds)")
  }

  /// The error for a transfer that exceeds its total time.
  func totalPassed(_ total: TimeAmount) -> CacheError {
    CacheError(.timedOut, reason: "the response was not complete after \(Duration(total).inSeconds)")
  }
}
#endif
