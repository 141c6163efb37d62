internal import CacheCore

/// A handle on one download that exists before the download does.
///
/// Cancelling is latched: a cancel that comes before the download has been linked to a transfer is remembered, and carried out then, without a request.
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
    /// A download has begun; the closure cancels what goes on before there is a transfer.
    case preparing(@Sendable () -> Void)
    case linked(SessionDataTask.CancelToken)
    /// There will be no transfer, or it is over.
    case over
  }

  private struct State {
    var phase = Phase.idle
    /// Weak: a handle that somebody keeps must not keep a body's bytes.
    weak var transfer: SessionDataTask?
    var isUsed = false
    var isCancelled = false
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

  /// A handle for one download.
  public init() {}

  /// Gives the download up. Others that share its transfer are not disturbed. Later calls do nothing.
  public func cancel() {
    typealias Step = (Phase, SessionDataTask?, [CheckedContinuation<Bool, Never>])
    let (phase, transfer, waiters): Step = state.withLock { state in
      guard !state.isCancelled else { return (.over, nil, []) }
      state.isCancelled = true
      let phase = state.phase
      state.phase = .over
      return (phase, state.transfer, state.settle(false))
    }
    for waiter in waiters { waiter.resume(returning: false) }
    switch phase {
    case .idle, .over: break
    case .preparing(let cancel): cancel()
    case .linked(let token): transfer?.cancel(token: token)
    }
  }

  /// Whether ``cancel()`` was called.
  public var isCancelled: Bool { state.withLock { $0.isCancelled } }

  /// Waits until the download's transfer is started: true, or until it is certain that none will be: false.
  ///
  /// A transfer that is shared counts as started. False too when the waiting task is cancelled.
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
  ///
  /// - Parameter cancelling: stops what goes on before there is a transfer.
  func begin(cancelling: @escaping @Sendable () -> Void) throws(CacheError) {
    try state.withLock { state throws(CacheError) in
      guard !state.isUsed else { throw CacheError(.misuse, reason: "a download's handle was used twice") }
      state.isUsed = true
      if !state.isCancelled { state.phase = .preparing(cancelling) }
    }
  }

  /// The download has its share of a transfer; false when it was cancelled before.
  func link(_ task: SessionDataTask, _ token: SessionDataTask.CancelToken) -> Bool {
    state.withLock { state in
      guard !state.isCancelled else { return false }
      state.transfer = task
      state.phase = .linked(token)
      return true
    }
  }

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
