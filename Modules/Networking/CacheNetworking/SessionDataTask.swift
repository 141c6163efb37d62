public import CacheCore
public import Foundation
internal import HTTPTypes

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// A running `URLSession` task and its response, whose bytes are buffered until they are read.
///
/// ``SessionDelegate/start(_:in:bufferLimit:)-(URLRequest,_,_)`` makes one for a session of your own. ``SessionDownloader`` makes
/// one for each download.
///
/// ```swift
/// let delegate = SessionDelegate()
/// let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
/// let transfer = try delegate.start(urlRequest, in: session)
/// let response = try await transfer.response()  // returns at the head
/// for try await chunk in response.body { print(chunk.count) }
/// print(transfer.metrics)
/// ```
///
/// A cancelled reader ends at once, because `URLSession` may cancel late on Linux.
public final class SessionDataTask: Sendable {
  /// An event of a transfer: one head, any number of chunks, one end, in this order.
  enum Event: Sendable {
    /// The head of the final response. Interim responses (1xx) are not a part of it.
    case head(HTTPResponse)
    /// The next bytes, never empty.
    case data(Data)
    /// The last event: an error, or `nil` if the body is complete.
    case end(CacheError?)
  }

  struct State {
    var buffer = TransferBuffer()
    var assembler: ResponseAssembler
    var isStarted = false
    /// Whether the response was taken by its reader.
    var isTaken = false
    /// The priority of the transfer: 0 to 1, or -1 before the first one is set.
    var priority: Float = -1
    var idleness: Idleness
    /// The deadline that checks for idleness, from the start to the end.
    var idleCheck: DeadlineTimer.ScheduledDeadline?
  }

  /// The platform's task. Cancel the transfer through this object, and do not suspend the platform's. Foundation on Linux starts
  /// a suspended task over.
  public let task: URLSessionDataTask
  /// The URL of the request.
  public let url: URL

  let state: Lock<State>
  /// The maximum number of bytes buffered for a slow reader, or `nil` for no limit.
  let bufferLimit: Int?
  /// The largest body, in bytes, that the reader gets together with the head.
  let collectUpTo: Int
  /// The proxy of the transfer, or `nil` if there is none or it is unknown.
  let proxy: ProxySettings.Proxy?
  /// The body of the request, retained because the platform's task may read its file to the end.
  private let body: OutgoingBody
  /// The queue of the session, on which its delegate is called.
  let queue: OperationQueue
  private let onInterimResponse: (@Sendable (HTTPResponse) -> Void)?
  private let didEnd: @Sendable (SessionDataTask, CacheError?) -> Void

  /// - Parameters:
  ///   - queue: The queue of the session, on which its delegate is called.
  ///   - plan: The request.
  ///   - didEnd: Called once, outside any lock, when the transfer has ended or was cancelled.
  init(
    _ task: URLSessionDataTask, queue: OperationQueue, plan: TransferPlan, bufferLimit: Int?, startedAt: Duration,
    didEnd: @escaping @Sendable (SessionDataTask, CacheError?) -> Void
  ) {
    self.task = task
    self.queue = queue
    url = plan.url
    proxy = plan.proxy
    body = plan.body
    onInterimResponse = plan.onInterimResponse
    self.bufferLimit = bufferLimit
    collectUpTo = min(plan.collectUpTo, bufferLimit ?? .max)
    self.didEnd = didEnd
    let assembler = ResponseAssembler(
      method: plan.head.method, startedAt: startedAt, proxy: plan.proxy, tunnel: plan.isTunnelled)
    state = Lock(State(assembler: assembler, idleness: Idleness(limit: plan.idleTimeout, at: startedAt)))
  }

  /// Waits for the head of the response, and returns it with the body. Releasing or cancelling the body stops the transfer. So
  /// does cancelling the calling task.
  ///
  /// - Throws: `CacheError.Code.misuse` if the response was already taken. A downloader takes the responses of its own transfers.
  public func response() async throws(CacheError) -> DownloadResponse {
    let source = try reader(priority: nil, deadline: nil)
    let head = try await source.head()
    return DownloadResponse(head: head, body: ResourceBody(length: bodyLength, source: source), metrics: { self.metrics })
  }

  /// Returns the only reader of the response.
  func reader(priority: LoadPriority?, deadline: DeadlineTimer.ScheduledDeadline?) throws(CacheError) -> TransferBody {
    let isFirst = state.withLock { state in
      defer { state.isTaken = true }
      return !state.isTaken
    }
    guard isFirst else { throw CacheError(.misuse, reason: "the response of a transfer was taken twice") }
    return TransferBody(self, priority: priority, deadline: deadline)
  }

  /// Cancels the transfer. Its reader ends with `CacheError.cancelled`. Later calls do nothing.
  public func cancel() { cancel(because: .cancelled) }

  /// Cancels the transfer. Its reader ends with this error.
  func cancel(because error: CacheError) { carryOut(state.withLock { $0.cancel(because: error) }) }

  /// Starts the transfer. Later calls, and calls after the end, do nothing.
  package func resume() {
    let starts = state.withLock { state in
      guard !state.isStarted, !state.buffer.hasEnded else { return false }
      state.isStarted = true
      return true
    }
    if starts { task.resume() }
  }

  /// Whether ``resume()`` was called.
  package var isStarted: Bool { state.withLock { $0.isStarted } }

  /// Whether the transfer is complete, has failed or was cancelled.
  public var hasEnded: Bool { state.withLock { $0.buffer.hasEnded } }

  /// The time of the last byte of a complete response, by the downloader's clock.
  var endedAt: Duration? { state.withLock { $0.assembler.endedAt } }

  /// The metrics so far.
  public var metrics: TransferMetrics { state.withLock { $0.assembler.metrics } }

  /// Does the work that a step of the transfer causes.
  func carryOut(_ consequences: Consequences) {
    // Stop the transfer first: a reader that is resumed may send the same request again at once.
    if consequences.stops {
      cancelPlatform()
      leave(.cancelled)
    }
    consequences.wakeUp?()
  }

  /// Cancels the platform's task on the session's queue. Foundation on Linux traps if a task is cancelled while another thread
  /// marks it completed. That happens on this queue after the delegate's last call.
  private func cancelPlatform() { queue.addOperation { [task] in task.cancel() } }

  private func leave(_ error: CacheError?) {
    let idleCheck = state.withLock { state in
      defer { state.idleCheck = nil }
      return state.idleCheck
    }
    withExtendedLifetime(idleCheck) {}
    didEnd(self, error)
  }

  /// Ends the transfer.
  ///
  /// - Parameter stopping: Whether the platform's task still runs.
  func finish(_ error: CacheError?, stopping: Bool = false) {
    let (isFirst, wakeUp): (Bool, TransferBuffer.WakeUp?) = state.withLock { state in
      guard state.buffer.end(error) else { return (false, nil) }
      return (true, state.buffer.wakeUp())
    }
    guard isFirst else { return }
    if stopping { cancelPlatform() }
    leave(error)
    wakeUp?()
  }
}

extension SessionDataTask {
  /// Returns the whole body after its head was received, if it has arrived and may be collected.
  func takeCollected() -> Data? { state.withLock { $0.buffer.takeWhole(upTo: collectUpTo) } }

  /// Waits for the reader's next event. If the calling task is cancelled, the transfer stops and the event is its end.
  func nextEvent() async -> Event {
    if Task.isCancelled {
      cancel()
    } else if let event = state.withLock({ $0.buffer.nextUnlessAwaited() }) {
      return event
    }
    return await withTaskCancellationHandler {
      await withResumption { continuation in
        let event = state.withLock { $0.buffer.wait(continuation) }
        if let event { continuation.resume(returning: event) }
      }
    } onCancel: {
      cancel()
    }
  }
}

/// The calls of the session's delegate. They are serial, on the session's queue.
extension SessionDataTask {
  func receive(
    _ response: HTTPURLResponse, at uptime: Duration, holdsUnauthorized: Bool
  ) throws(CacheError) -> [Event] {
    let (events, interim) = try state.withLock { state throws(CacheError) in
      state.idleness.lastActivity = uptime
      let interim = state.assembler.interim(response)
      return (try state.assembler.receive(response, at: uptime, holdsUnauthorized: holdsUnauthorized), interim)
    }
    if let interim { onInterimResponse?(interim) }
    return events
  }

  func receive(_ data: Data, at uptime: Duration) throws(CacheError) -> [Event] {
    try state.withLock { state throws(CacheError) in
      state.idleness.lastActivity = uptime
      return try state.assembler.receive(data)
    }
  }

  /// Starts the idle timeout, at the start of the transfer.
  func watchIdleness(_ watch: DeadlineTimer, at now: Duration) {
    let first: Duration? = state.withLock { state in
      guard !state.buffer.hasEnded else { return nil }
      state.idleness = Idleness(limit: state.idleness.limit, at: now)
      return state.idleness.nextCheck
    }
    guard let first else { return }
    let scheduled = watch.add(due: first) { [weak self] now in self?.checkIdleness(at: now) }
    state.withLock { if !$0.buffer.hasEnded { $0.idleCheck = scheduled } }
  }

  /// Notes that bytes of the request were sent.
  func noteActivity(at uptime: Duration) { state.withLock { $0.idleness.lastActivity = uptime } }

  /// Pauses the idle timeout until the next activity, because the platform waits for a network.
  func pauseIdleness() { state.withLock { $0.idleness.lastActivity = nil } }

  /// Stores the platform's measurements.
  func note(_ times: TaskTimes) { state.withLock { $0.assembler.times = times } }

  /// Ends the transfer if it has been idle for too long. Returns the time of the next check, or `nil` if the transfer has ended.
  func checkIdleness(at now: Duration) -> Duration? {
    let (next, limit): (Duration?, Duration?) = state.withLock { state in
      guard !state.buffer.hasEnded else { return (nil, nil) }
      let next = state.idleness.check(at: now)
      return (next, next == nil ? state.idleness.limit : nil)
    }
    if let limit { finish(CacheError(.timedOut, reason: "no data arrived for \(limit)"), stopping: true) }
    return next
  }

  /// Notes that a credential was supplied, so that the response is private to one user.
  func noteCredential() { state.withLock { $0.assembler.usesCredential = true } }

  /// Releases the response that was held back.
  func releaseHeld() -> [Event] { state.withLock { $0.assembler.release() } }

  func receiveEnd(_ error: (any Error)?, response: URLResponse?, at uptime: Duration) -> [Event] {
    state.withLock { state in
      var error = error
      // The platform counts the time of a suspension. A retry policy repeats a request whose connection was lost, and may not
      // repeat one that the server left without data.
      if (error as? URLError)?.code == .timedOut, state.idleness.isBelowLimit(at: uptime) {
        error = URLError(.networkConnectionLost)
      }
      let held = state.assembler.releaseAtEnd(error)
      return held + state.assembler.end(error, response: response, at: uptime)
    }
  }

  /// Whether a response is held back that a credential may supersede.
  var isHolding: Bool { state.withLock { $0.assembler.isHolding } }

  /// The number of bytes to be delivered, or `nil` before the head or if it is unknown.
  var bodyLength: Int64? { state.withLock { $0.assembler.bodyLength } }

  /// Counts the next bytes of a body and passes them on, in one critical section. Returns `false` if they need
  /// ``receive(_:at:)``.
  func pass(_ data: Data, at uptime: Duration) -> Bool {
    let consequences: Consequences? = state.withLock { state in
      guard state.assembler.count(data) else { return nil }
      state.idleness.lastActivity = uptime
      return state.deliver(data, limit: bufferLimit)
    }
    guard let consequences else { return false }
    carryOut(consequences)
    return true
  }

  /// Passes an event on to the reader.
  func publish(_ event: Event) {
    switch event {
    case .head(let head):
      let wakeUp = state.withLock { state in
        let isCollecting = head.isCollected(upTo: collectUpTo, length: state.assembler.bodyLength)
        state.buffer.receive(head: head, isCollecting: isCollecting)
        return state.buffer.wakeUp()
      }
      wakeUp?()
    case .data(let data): carryOut(state.withLock { $0.deliver(data, limit: bufferLimit) })
    case .end(let error): finish(error)
    }
  }

  /// The work that a step of the transfer causes, to be done outside the lock.
  struct Consequences {
    var wakeUp: TransferBuffer.WakeUp?
    /// Whether the transfer was running and ends.
    var stops = false
  }
}

extension SessionDataTask.State {
  mutating func deliver(_ data: Data, limit: Int?) -> SessionDataTask.Consequences {
    buffer.receive(data)
    // A waiting reader accepts a chunk of any size. The platform decides the size.
    if let wakeUp = buffer.wakeUp() { return SessionDataTask.Consequences(wakeUp: wakeUp) }
    guard let limit, buffer.retainedBytes > limit else { return SessionDataTask.Consequences() }
    return cancel(
      because: CacheError(
        .readerTooSlow, reason: "more than \(limit) received bytes were not read; Foundation has no back-pressure"))
  }

  /// Cancels the reader, which gets this error as its end, and the transfer.
  mutating func cancel(because error: CacheError) -> SessionDataTask.Consequences {
    guard buffer.cancelReader(because: error) else { return SessionDataTask.Consequences() }
    let stops = buffer.end(.cancelled)
    return SessionDataTask.Consequences(wakeUp: buffer.wakeUp(), stops: stops)
  }
}

extension SessionDataTask {
  /// The priority of the transfer. On Linux the platform's task does not get it.
  package var priority: Float { state.withLock { $0.priority } }

  /// Raises the priority of the transfer. Never lowers it, because the request may have been raised meanwhile.
  func raise(to level: LoadPriority.Level) {
    let value = Self.platformPriority(level)
    let isHigher = state.withLock { state in
      guard value > state.priority else { return false }
      state.priority = value
      return true
    }
    guard isHigher else { return }
    // A priority has no effect on Linux. Setting one there can delay a cancellation until the session has removed the task, and
    // Foundation traps on that.
    #if !canImport(FoundationNetworking)
    task.priority = value
    #endif
  }

  static func platformPriority(_ level: LoadPriority.Level) -> Float {
    switch level {
    case .veryLow: 0
    case .low: 0.25
    case .normal: 0.5
    case .high: 0.75
    case .veryHigh: 1
    }
  }
}
