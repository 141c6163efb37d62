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
    /// The head of the final response. Interim responses (1xx) are not reported.
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
    /// The time at which bytes were last received or sent, or `nil` while the platform waits for a network.
    var lastActivity: Duration?
    /// The deadline that checks for idleness, from the start to the end.
    var idleness: DeadlineTimer.ScheduledDeadline?
  }

  /// The platform's task. Cancel the transfer through this object, and do not suspend the platform's. Foundation on Linux starts
  /// a suspended task over.
  public let task: URLSessionDataTask
  /// The URL of the request.
  public let url: URL

  let state: Lock<State>
  /// The maximum time without received or sent bytes.
  let idleTimeout: Duration
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
    idleTimeout = plan.idleTimeout
    proxy = plan.proxy
    body = plan.body
    self.bufferLimit = bufferLimit
    collectUpTo = min(plan.collectUpTo, bufferLimit ?? .max)
    self.didEnd = didEnd
    let assembler = ResponseAssembler(
      method: plan.head.method, startedAt: startedAt, proxy: plan.proxy, tunnel: plan.isTunnelled)
    state = Lock(State(assembler: assembler, lastActivity: startedAt))
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
    let idleness = state.withLock { state in
      defer { state.idleness = nil }
      return state.idleness
    }
    withExtendedLifetime(idleness) {}
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
