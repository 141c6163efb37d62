public import CacheCore

/// A handle on one download that exists before the download does.
///
/// Cancelling is latched: a cancel that comes before the download has been linked to a transfer is remembered, and carried out
/// then, without a request.
///
/// ```swift
/// let handle = DownloadTask()
/// button.onTap { handle.cancel() }  // whenever
/// let response = try await downloader.download(request, as: handle)
/// ```
public final class DownloadTask: Sendable {
  private enum Phase {
    /// Nobody has used the handle yet.
    case idle
    /// A download has begun; the closures cancel what goes on before there is a transfer.
    case preparing([@Sendable () -> Void])
    case linked
    /// There will be no transfer, or it is over.
    case over
  }

  private struct State {
    var phase = Phase.idle
    /// Weak: a handle that somebody keeps must not keep a body's bytes.
    weak var transfer: SessionDataTask?
    var isUsed = false
    /// Why the download was given up.
    var cancellation: CacheError?
    /// Whether a hook is still to judge the answer, or does.
    var awaitsJudgement = false
    /// Cancels the hook that judges the answer, while one does.
    var judging: (@Sendable () -> Void)?
    /// Whether a transfer was started; nil while that is open.
    var started: Bool?
    var nextWaiter = 0
    var waiters: [Int: CheckedContinuation<Bool, Never>] = [:]

    mutating func settle(_ value: Bool) -> [CheckedContinuation<Bool, Never>] {
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

  /// The download's time is over. Does nothing when everything has come and was judged, though it may not have been read yet.
  func expire(after limit: Duration) {
    let (transfer, awaitsJudgement) = state.withLock { ($0.transfer, $0.awaitsJudgement) }
    guard transfer?.endedAt == nil || awaitsJudgement else { return }
    cancel(because: CacheError(.timedOut, reason: "head and body did not come within \(limit)"))
  }

  private func cancel(because error: CacheError) {
    typealias Step = (Phase, SessionDataTask?, (@Sendable () -> Void)?, [CheckedContinuation<Bool, Never>])
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

  /// Why the download was given up, if it was.
  var cancellation: CacheError? { state.withLock { $0.cancellation } }

  /// Waits until the download's transfer is started: true, or until it is certain that none will be: false.
  ///
  /// False too when the waiting task is cancelled.
  public var started: Bool {
    get async {
      let id = state.withLock { state in
        state.nextWaiter += 1
        return state.nextWaiter
      }
      return await withTaskCancellationHandler {
        await withCheckedContinuation { continuation in
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

  /// The transfer behind the download, while it is linked to one that runs.
  public var sessionTask: SessionDataTask? {
    state.withLock { state in
      guard case .linked = state.phase, let transfer = state.transfer, !transfer.hasEnded else { return nil }
      return transfer
    }
  }

  // MARK: The downloader's side

  /// A download begins with this handle.
  func begin() throws(CacheError) {
    try state.withLock { state throws(CacheError) in
      guard !state.isUsed else { throw CacheError(.misuse, reason: "a download's handle was used twice") }
      state.isUsed = true
      if state.cancellation == nil { state.phase = .preparing([]) }
    }
  }

  /// Something goes on before there is a transfer; `cancel` stops it, at once when the download has been given up already.
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

  /// A hook is going to judge the answer.
  func awaitJudgement() { state.withLock { $0.awaitsJudgement = true } }

  /// A hook judges the answer; `cancel` stops it, at once when the download has been given up already.
  func beginJudging(_ cancel: @escaping @Sendable () -> Void) {
    let isOver = state.withLock { state in
      guard state.cancellation == nil else { return true }
      state.judging = cancel
      return false
    }
    if isOver { cancel() }
  }

  /// The answer is judged.
  func endJudging() { state.withLock { ($0.awaitsJudgement, $0.judging) = (false, nil) } }

  /// The transfer runs.
  func didStart() {
    let waiters = state.withLock { $0.settle(true) }
    for waiter in waiters { waiter.resume(returning: true) }
  }

  /// The download is over, so that the handle keeps nothing alive.
  func end() {
    let waiters: [CheckedContinuation<Bool, Never>] = state.withLock { state in
      state.phase = .over
      return state.settle(false)
    }
    for waiter in waiters { waiter.resume(returning: false) }
  }
}
