internal import CacheCore

/// A handle for one download, created before the download begins.
///
/// Cancelling the handle before the download has a transfer takes effect without a request. Where the download is awaited in a
/// task, cancelling that task does the same. The handle is for code that has none.
///
/// ```swift
/// let (downloader, handle) = (SessionDownloader(), DownloadTask())
/// let download = DownloadRequest(head: request)
/// Task { send(try await downloader.download(download, as: handle).body.collect()) }
/// handle.cancel()  // before, during or after the download
/// ```
public final class DownloadTask: Sendable {
  private enum Phase {
    /// The handle has not been used yet.
    case idle
    /// A download has begun. The closures cancel the work that precedes its transfer.
    case preparing([@Sendable () -> Void])
    case linked
    /// There will be no transfer, or it has ended.
    case over
  }

  private struct State {
    var phase = Phase.idle
    /// A weak reference, so that a handle does not retain the bytes of a body.
    weak var transfer: SessionDataTask?
    var isUsed = false
    /// The reason of the cancellation.
    var cancellation: CacheError?
    /// Whether a hook has yet to judge the response.
    var awaitsJudgment = false
    /// Cancels the hook that judges the response.
    var judging: (@Sendable () -> Void)?
    /// Whether a transfer was started, or `nil` while that is not decided.
    var started: Bool?
    var nextWaiter = 0
    var waiters: [Int: Resumption<Bool>] = [:]

    mutating func settle(_ value: Bool) -> [Resumption<Bool>] {
      guard started == nil else { return [] }
      started = value
      defer { waiters = [:] }
      return Array(waiters.values)
    }
  }

  private let state = Lock(State())

  /// Creates a handle for one download.
  public init() {}

  /// Cancels the download. Later calls do nothing.
  public func cancel() { cancel(because: .cancelled) }

  /// Cancels the download because its time limit has passed. Does nothing if the response is complete and was judged, even if it
  /// was not read yet.
  func expire(after limit: Duration) {
    let (transfer, awaitsJudgment) = state.withLock { ($0.transfer, $0.awaitsJudgment) }
    guard transfer?.endedAt == nil || awaitsJudgment else { return }
    cancel(because: CacheError(.timedOut, reason: "the response was not complete within \(limit)"))
  }

  private func cancel(because error: CacheError) {
    typealias Step = (Phase, SessionDataTask?, (@Sendable () -> Void)?, [Resumption<Bool>])
    let (phase, transfer, judging, waiters): Step = state.withLock { state in
      guard state.cancellation == nil else { return (.over, nil, nil, []) }
      state.cancellation = error
      let phase = state.phase
      state.phase = .over
      return (phase, state.transfer, state.judging, state.settle(false))
    }
    for waiter in waiters { waiter.resume(returning: false) }
    judging?()
    switch phase {
    case .idle, .over: break
    case .preparing(let cancels): for cancel in cancels { cancel() }
    case .linked: transfer?.cancel(because: error)
    }
  }

  /// Whether ``cancel()`` was called, or the request's own time limit has passed.
  public var isCancelled: Bool { cancellation != nil }

  /// The reason of the cancellation, or `nil` if there was none.
  var cancellation: CacheError? { state.withLock { $0.cancellation } }

  /// Waits until the transfer has started (`true`) or cannot start any more (`false`). Returns `false` if the waiting task is
  /// cancelled.
  package var started: Bool {
    get async {
      let id = state.withLock { state in
        state.nextWaiter += 1
        return state.nextWaiter
      }
      return await withTaskCancellationHandler {
        await withResumption { continuation in
          let known: Bool? = state.withLock { state in
            if let started = state.started { return started }
            if Task.isCancelled { return false }
            state.waiters[id] = continuation
            return nil
          }
          if let known { continuation.resume(returning: known) }
        }
      } onCancel: {
        state.withLock { $0.waiters.removeValue(forKey: id) }?.resume(returning: false)
      }
    }
  }

  /// The running transfer of the download, or `nil` if it has not begun or has ended.
  public var sessionTask: SessionDataTask? {
    state.withLock { state in
      guard case .linked = state.phase, let transfer = state.transfer, !transfer.hasEnded else { return nil }
      return transfer
    }
  }

  // MARK: The downloader's side

  /// Marks the handle as used.
  func begin() throws(CacheError) {
    try state.withLock { state throws(CacheError) in
      guard !state.isUsed else { throw CacheError(.misuse, reason: "a download handle was used twice") }
      state.isUsed = true
      if state.cancellation == nil { state.phase = .preparing([]) }
    }
  }

  /// Registers work that precedes the transfer. If the download was cancelled already, `cancel` is called at once.
  func whilePreparing(_ cancel: @escaping @Sendable () -> Void) {
    let isOver = state.withLock { state in
      guard case .preparing(let others) = state.phase else { return true }
      state.phase = .preparing(others + [cancel])
      return false
    }
    if isOver { cancel() }
  }

  /// Links the download to its transfer. Returns `false` if the download was cancelled before.
  func link(_ task: SessionDataTask) -> Bool {
    state.withLock { state in
      guard state.cancellation == nil else { return false }
      state.transfer = task
      state.phase = .linked
      return true
    }
  }

  /// Notes that a hook is going to judge the response.
  func awaitJudgment() { state.withLock { $0.awaitsJudgment = true } }

  /// Registers the hook that judges the response. If the download was cancelled already, `cancel` is called at once.
  func beginJudging(_ cancel: @escaping @Sendable () -> Void) {
    let isOver = state.withLock { state in
      guard state.cancellation == nil else { return true }
      state.judging = cancel
      return false
    }
    if isOver { cancel() }
  }

  /// Notes that the response was judged.
  func endJudging() { state.withLock { ($0.awaitsJudgment, $0.judging) = (false, nil) } }

  /// Notes that the transfer has started.
  func didStart() {
    let waiters = state.withLock { $0.settle(true) }
    for waiter in waiters { waiter.resume(returning: true) }
  }

  /// Ends the handle, so that it retains nothing.
  func end() {
    let waiters: [Resumption<Bool>] = state.withLock { state in
      state.phase = .over
      return state.settle(false)
    }
    for waiter in waiters { waiter.resume(returning: false) }
  }
}
