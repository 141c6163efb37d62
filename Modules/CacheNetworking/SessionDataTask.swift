public import CacheCore
public import Foundation
public import HTTPTypes

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// One `URLSession` task and everybody who wants its answer.
///
/// Callbacks come and go by token. Each gets the whole answer, in order and one event at a time, also when it joined after the
/// transfer had begun; cancelling one never disturbs another, and the last one's cancel stops the transfer. A cancelled callback
/// is ended here and at once: `URLSession` may take its time over a cancellation, or (on Linux) forget it.
///
/// ```swift
/// let token = task.addCallback { event in
///   if case .data(let chunk) = event { print(chunk.count) }
/// }
/// task.resume()
/// ```
public final class SessionDataTask: Sendable {
  /// What happens to a transfer, in this order: one head, any number of chunks, one end.
  public enum Event: Sendable {
    /// The final answer's head; interim ones (1xx) are not told.
    case head(HTTPResponse)
    /// The next bytes, never empty.
    case data(Data)
    /// The last event: an error, or nil when everything came.
    case end(CacheError?)
  }

  struct State {
    var log: TransferLog
    var assembler: ResponseAssembler
    var isStarted = false
    /// The highest that any sharer asked for; below all of them before the first does.
    var priority: Float = -1
    /// When something last came or went; nil while the platform waits for a network.
    var lastActivity: Duration?
    /// Looks whether it is idle, from the start to the end.
    var idleness: DeadlineTimer.ScheduledDeadline?
  }

  /// The platform's task. Resume and cancel through this object, not there.
  public let task: URLSessionDataTask
  /// The request, as it was given to the downloader.
  public let request: HTTPRequest
  /// The URL that it goes to.
  public let url: URL
  /// Tells the token of each callback that was cancelled.
  public let onCallbackCancelled = Delegate<CancelToken, Void>()
  /// Tells that the last callback was cancelled and the transfer is stopped.
  public let onLastCancelled = Delegate<SessionDataTask, Void>()

  let state: Lock<State>
  /// How long nothing may come.
  let idleTimeout: Duration
  /// Bytes that are held for a slow reader; nil: any number.
  let bufferLimit: Int?
  /// The proxy that it goes through, as far as that is known here.
  let proxy: ProxySettings.Proxy?
  /// What is sent; here so that its file lives as long as the platform's task may read it.
  private let body: OutgoingBody
  private let queue: OperationQueue
  private let didEnd: @Sendable (SessionDataTask, CacheError?) -> Void

  /// - Parameters:
  ///   - queue: the session's, on which its delegate is called.
  ///   - plan: what is asked, and how.
  ///   - joinLimit: bytes kept for those who join late.
  ///   - didEnd: called once, outside any lock, when the transfer is over or given up.
  init(
    _ task: URLSessionDataTask, queue: OperationQueue, plan: TransferPlan, joinLimit: Int, bufferLimit: Int?, startedAt: Duration,
    didEnd: @escaping @Sendable (SessionDataTask, CacheError?) -> Void
  ) {
    self.task = task
    self.queue = queue
    request = plan.head
    url = plan.url
    idleTimeout = plan.idleTimeout
    proxy = plan.proxy
    body = plan.body
    self.bufferLimit = bufferLimit
    self.didEnd = didEnd
    let assembler = ResponseAssembler(
      method: plan.head.method, startedAt: startedAt, proxy: plan.proxy, tunnel: plan.isTunnelled)
    state = Lock(State(log: TransferLog(joinLimit: joinLimit), assembler: assembler, lastActivity: startedAt))
  }

  /// Adds a callback, which gets everything from the head on: what has come already at once, on the calling thread.
  ///
  /// - Parameter callback: held strongly until its last event, or until it is removed.
  /// - Returns: its token, or nil when the answer's start is no longer held or the transfer is over.
  public func addCallback(_ callback: @escaping @Sendable (Event) -> Void) -> CancelToken? {
    let (token, wakeUp): (CancelToken?, TransferLog.WakeUp?) = state.withLock { state in
      guard let token = state.log.join(.push(callback, isDraining: false)) else { return (nil, nil) }
      return (token, state.log.wakeUp(token))
    }
    if let wakeUp { perform([wakeUp]) }
    return token
  }

  /// Takes a callback out without telling it anything. The transfer goes on, also when nobody is left.
  ///
  /// - Returns: whether it was there.
  @discardableResult
  public func removeCallback(_ token: CancelToken) -> Bool { state.withLock { $0.log.removeCallback(token) } }

  /// Cancels one callback: it ends with `CacheError.cancelled`. The last one's cancel stops the transfer. Later calls do nothing.
  public func cancel(token: CancelToken) { cancel(token: token, because: .cancelled) }

  /// Cancels one callback, which ends with this error.
  func cancel(token: CancelToken, because error: CacheError) {
    let (isCancelled, isLast, wakeUp): (Bool, Bool, TransferLog.WakeUp?) = state.withLock { state in
      guard state.log.cancel(token, because: error) else { return (false, false, nil) }
      let isLast = state.log.activeReaders == 0 && state.log.end(.cancelled)
      return (true, isLast, state.log.wakeUp(token))
    }
    guard isCancelled else { return }
    // First the transfer: who is woken by the cancel may ask again at once, and must get a new one.
    if isLast { stop() }
    if let wakeUp { perform([wakeUp]) }
    onCallbackCancelled.call(token)
    if isLast { onLastCancelled.call(self) }
  }

  /// Cancels every callback and stops the transfer.
  public func forceCancel() {
    let (tokens, didStop, wakeUps): ([CancelToken], Bool, [TransferLog.WakeUp]) = state.withLock { state in
      let tokens = state.log.cancelAll()
      let didStop = state.log.end(.cancelled)
      return (tokens, didStop, state.log.wakeUps())
    }
    if didStop { stop() }
    perform(wakeUps)
    for token in tokens { onCallbackCancelled.call(token) }
    if didStop { onLastCancelled.call(self) }
  }

  /// Starts the transfer. Later calls do nothing, nor does one after the end.
  public func resume() {
    let starts = state.withLock { state in
      guard !state.isStarted, !state.log.hasEnded else { return false }
      state.isStarted = true
      return true
    }
    if starts { task.resume() }
  }

  /// Whether ``resume()`` was called.
  public var isStarted: Bool { state.withLock { $0.isStarted } }

  /// Whether everything came, it failed, or everybody gave up.
  public var hasEnded: Bool { state.withLock { $0.log.hasEnded } }

  /// Whether a callback that is added now gets the whole answer.
  public var canJoin: Bool { state.withLock { $0.log.canJoin } }

  /// How many callbacks and bodies wait for this transfer.
  public var sharers: Int { state.withLock { $0.log.activeReaders } }

  /// When the last byte of a whole answer came, by the downloader's clock.
  var endedAt: Duration? { state.withLock { $0.assembler.endedAt } }

  /// What was measured up to now.
  public var metrics: TransferMetrics { state.withLock { $0.assembler.metrics } }

  private func stop() {
    cancelPlatform()
    leave(.cancelled)
  }

  /// On the session's queue: Foundation on Linux traps when a task is cancelled while another thread marks it completed, which it
  /// does on that queue right after the delegate was told.
  private func cancelPlatform() { queue.addOperation { [task] in task.cancel() } }

  private func leave(_ error: CacheError?) {
    let idleness = state.withLock { state in
      defer { state.idleness = nil }
      return state.idleness
    }
    withExtendedLifetime(idleness) {}
    didEnd(self, error)
  }

  /// These callbacks were cancelled from here, by whom they don't keep up with.
  func left(_ tokens: [CancelToken], wasLast: Bool) {
    if wasLast { stop() }
    for token in tokens { onCallbackCancelled.call(token) }
    if wasLast { onLastCancelled.call(self) }
  }

  /// Ends the transfer for everybody; `stopping` where the platform's task still runs.
  func finish(_ error: CacheError?, stopping: Bool = false) {
    let (ended, wakeUps): (Bool, [TransferLog.WakeUp]) = state.withLock { state in
      guard state.log.end(error) else { return (false, []) }
      return (true, state.log.wakeUps())
    }
    guard ended else { return }
    if stopping { cancelPlatform() }
    leave(error)
    perform(wakeUps)
  }

  func perform(_ wakeUps: [TransferLog.WakeUp]) {
    for wakeUp in wakeUps {
      switch wakeUp {
      case .resume(let continuation, let event): continuation.resume(returning: event)
      case .drain(let token, let callback):
        while let event = state.withLock({ $0.log.nextInTurn(for: token) }) { callback(event) }
      }
    }
  }
}
