#if AsyncHTTP
internal import CacheCore
internal import NIOCore
internal import NIOHTTP1

/// Where one transfer stands, and what follows from what happens to it.
///
/// A value without a lock, a thread or a clock: every moment is handed in, and what must be done outside is handed out as
/// ``Consequences``.
struct TransferState {
  private enum Stage {
    /// It has not been handed to the client.
    case queued
    case awaitingHead
    case receiving
    case complete
    case failed(CacheError)
  }

  /// What has to be done outside the lock.
  struct Consequences {
    /// The reader, who looks again at what there is.
    var wake: Transfer.Waiter?
    var demand: EventLoopPromise<Void>?
    var stop: (@Sendable () -> Void)?
    /// When ``TransferState/look(at:)`` has to be called at the latest, unless it was told earlier.
    var due: NIODeadline?
    var end: End?
  }

  /// Whether a reader has to wait.
  enum Wait {
    /// It will be woken.
    case waiting
    /// There is something to take already.
    case ready
    /// Somebody else waits.
    case taken
  }

  /// It is over.
  struct End {
    /// Whether the request had been handed to the client.
    var hadTurn: Bool
  }

  /// How far an answer got.
  struct Progress {
    var hasHead = false
    var received: Int64 = 0
    var expected: Int64?
  }

  private let limits: TransferLimits
  private var stage = Stage.queued
  private(set) var progress = Progress()

  private var head: ReceivedHead?
  /// The reader, while it waits: first for the head, then for bytes.
  private var waiter: Transfer.Waiter?
  private var unread = Chunk()
  /// Kept while enough is unread: whoever sends waits for it.
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
  ///   - limits: how long it may take.
  ///   - calledAt: when it was asked for.
  ///   - nameLookup: how long looking the name up took, where that was done beforehand.
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

  /// Who cancels a body that has come whole, but has not read it, hears of it too.
  mutating func cancel() -> Consequences {
    if case .complete = stage, !unread.isEmpty { stage = .failed(.cancelled) }
    unread = Chunk()
    return fail(.cancelled)
  }

  /// The head, or why there is none; nil: neither has come.
  var answer: Result<ReceivedHead, CacheError>? {
    switch stage {
    case .queued, .awaitingHead: nil
    // A body that broke before anybody looked has a head all the same.
    case .failed(let error): head.map { error.isCancellation ? .failure(error) : .success($0) } ?? .failure(error)
    case .receiving, .complete: head.map { .success($0) } ?? .failure(Self.headless)
    }
  }

  mutating func awaitHead(_ waiter: Transfer.Waiter) -> Wait {
    guard answer == nil else { return .ready }
    self.waiter = waiter
    return .waiting
  }

  /// What there is, without waiting; nil: nothing yet.
  mutating func take(at now: NIODeadline) -> (Result<Chunk?, CacheError>?, Consequences) {
    switch stage {
    // What came before it broke is handed over first: who continues a body needs every byte of it.
    case .failed(let error) where unread.isEmpty: return (.failure(error), Consequences())
    case .complete where unread.isEmpty: return (.success(nil), Consequences())
    case _ where unread.isEmpty || waiter != nil: return (nil, Consequences())
    default: break
    }
    let demand = releaseDemand()
    // Nobody could send while the reader was slow, so the other end's time starts anew.
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
    // Until the request is out, the client's own limits of time for connections hold; a deadline holds from the call on.
    return (true, Consequences(due: limits.total == nil ? nil : dueTime))
  }

  /// What stops the request. One that was sent again before its own stop came here, from another thread, has the later one's.
  mutating func launched(attempt: Int = 1, _ stop: @escaping @Sendable () -> Void) -> Consequences {
    switch stage {
    case .failed: return Consequences(stop: stop)
    case .complete: return Consequences()
    case .queued, .awaitingHead, .receiving:
      if attempt == metrics.attempts { self.stop = stop }
      return Consequences()
    }
  }

  mutating func sent(overKeptConnection isReused: Bool, at now: NIODeadline) -> Consequences {
    isSent = true
    metrics.isReusedConnection = isReused ? true : nil
    lastActivity = now
    return Consequences(due: dueTime)
  }

  /// Whether the request, which an error has ended, is to be sent once more: when it met a kept connection that the server had
  /// given up, of which nothing can be known before it is used. One that failed before it was sent has met such a connection
  /// while that was closing.
  mutating func sendAgain(after error: any Error) -> Bool {
    let attempts = isSent ? limits.attempts : 3
    guard case .awaitingHead = stage, metrics.attempts < attempts, !isSent || metrics.isReusedConnection == true,
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
    // The client asks for the body once its connection is there.
    isSent = true
    lastActivity = now
    return Consequences(due: dueTime)
  }

  // MARK: The answer

  mutating func receive(_ head: ReceivedHead, at now: NIODeadline) -> Consequences {
    guard case .awaitingHead = stage else { return Consequences() }
    stage = .receiving
    lastActivity = now
    self.head = head
    progress.hasHead = true
    progress.expected = head.bodyLength
    metrics.protocolName = head.protocolName
    metrics.timeToHead = startedAt.map { Duration(now - $0) }
    return Consequences(wake: releaseWaiter())
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
      return (nil, fail(CacheError.overlong(received: progress.received, expected: expected)))
    }
    unread.append(bytes)
    // The end follows the last byte at once: nothing has to wait, and the reader who is woken for both sleeps once less.
    guard progress.received != progress.expected else { return (nil, Consequences()) }
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
      wake: releaseWaiter(), demand: releaseDemand(), stop: stop, end: End(hadTurn: startedAt != nil))
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

  private static var headless: CacheError { CacheError(.malformedResponse, reason: "the answer had no head") }

  // MARK: Time

  /// Whether it is for the other end to do something. A reader that does not ask, or a request body that is not there yet, is no
  /// silence of the server.
  private var waitsForPeer: Bool {
    switch stage {
    case .queued: progressOfQueue != nil
    // Before it is sent, the client's own limit for connections holds.
    case .awaitingHead: isSent && !isProducing
    case .receiving: waiter != nil
    case .complete, .failed: false
    }
  }

  private var dueTime: NIODeadline? {
    let deadline = limits.total.map { calledAt + $0 }
    guard waitsForPeer else { return deadline }
    let silence = max(lastActivity, progressOfQueue?() ?? lastActivity) + limits.idle
    return deadline.map { min($0, silence) } ?? silence
  }

  /// Ends what has taken too long. To be called when time is due; what is still to come is said as the next due time.
  mutating func look(at now: NIODeadline) -> Consequences {
    guard !hasEnded else { return Consequences() }
    if let total = limits.total, now >= calledAt + total { return fail(limits.totalPassed(total)) }
    if waitsForPeer, let dueTime, now >= dueTime {
      if case .queued = stage { return fail(limits.queuePassed) }
      return fail(limits.idlePassed(hasHead: progress.hasHead))
    }
    return Consequences(due: dueTime)
  }
}
#endif
