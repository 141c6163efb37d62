internal import CacheCore

/// What happens during a flight, before its end.
enum FlightEvent<Output: Sendable>: Sendable {
  case progress(LoadProgress)
  /// An output that may be outdated; the flight goes on to the end even if everybody leaves now.
  case stale(Output)
}

/// An output that says whether it may be handed to others than the first who asked.
protocol Shareable: Sendable {
  var isShareable: Bool { get }
}

/// One piece of work that many wait for. Ends exactly once for each of them.
///
/// Cancelling one waiter never cancels another. When the last one leaves, the work is cancelled and the flight takes no more waiters, so a
/// request that comes then starts anew.
final class Flight<Output: Shareable>: Sendable {
  struct Waiter: Sendable {
    var event: @Sendable (FlightEvent<Output>) -> Void
    var end: @Sendable (Result<Output, CacheError>) -> Void
    /// Called in place of `end` when the outcome is the leader's alone: the waiter has to ask for itself.
    var askAlone: @Sendable () -> Void
  }

  private struct State {
    var waiters: [Int: Waiter] = [:]
    var nextToken = 0
    var task: Task<Void, Never>?
    var isClosed = false
    var isCancelled = false
    var isOver = false
    var closers: [CheckedContinuation<Void, Never>] = []
    var survivesItsWaiters = false
    var lastProgress: LoadProgress?
    var stale: Output?
  }

  private let state = Lock(State())
  let priority: LoadPriority
  private let onClose: @Sendable (Flight<Output>) -> Void

  /// - Parameter onClose: called once, when the flight takes no more waiters.
  init(priority: LoadPriority, onClose: @escaping @Sendable (Flight<Output>) -> Void) {
    self.priority = priority
    self.onClose = onClose
  }

  /// Starts the work; `body` gets the flight to report to.
  ///
  /// It begins on the caller's thread and leaves it at the first wait: planning takes microseconds, a change of threads tens of them.
  ///
  /// - Returns: false when everybody had left before: nothing is begun then.
  func start(_ body: @escaping @Sendable (Flight<Output>) async -> Result<Output, CacheError>) -> Bool {
    guard !state.withLock({ $0.isCancelled }) else {
      finish(.failure(.cancelled))
      return false
    }
    let task: Task<Void, Never>
    if #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) {
      task = Task.immediateDetached { self.finish(await body(self)) }
    } else {
      task = Task.detached { self.finish(await body(self)) }
    }
    let isCancelled = state.withLock { state in
      state.task = task
      return state.isCancelled
    }
    if isCancelled { task.cancel() }
    return true
  }

  /// Joins, unless the flight is over. What has happened so far is told at once.
  ///
  /// - Returns: what ``leave(_:with:)`` takes.
  func join(_ waiter: Waiter) -> Int? {
    let joined: (token: Int, progress: LoadProgress?, stale: Output?)? = state.withLock { state in
      guard !state.isClosed else { return nil }
      state.nextToken += 1
      state.waiters[state.nextToken] = waiter
      return (state.nextToken, state.lastProgress, state.stale)
    }
    guard let joined else { return nil }
    if let stale = joined.stale { waiter.event(.stale(stale)) }
    if let progress = joined.progress { waiter.event(.progress(progress)) }
    return joined.token
  }

  /// Ends the waiting of one; the others do not notice. Does nothing for whom the flight has ended.
  func leave(_ token: Int, with error: CacheError) {
    let (waiter, task, closes) = state.withLock { state -> (Waiter?, Task<Void, Never>?, Bool) in
      guard let waiter = state.waiters.removeValue(forKey: token) else { return (nil, nil, false) }
      guard state.waiters.isEmpty, !state.survivesItsWaiters else { return (waiter, nil, false) }
      let closes = !state.isClosed
      state.isClosed = true
      state.isCancelled = true
      return (waiter, state.task, closes)
    }
    if closes { onClose(self) }
    task?.cancel()
    waiter?.end(.failure(error))
  }

  /// Cancels the work of a flight that nobody waits for.
  func cancelIfUnattended() {
    let (task, closes) = state.withLock { state -> (Task<Void, Never>?, Bool) in
      guard state.waiters.isEmpty else { return (nil, false) }
      let closes = !state.isClosed
      state.isClosed = true
      state.isCancelled = true
      return (state.task, closes)
    }
    if closes { onClose(self) }
    task?.cancel()
  }

  /// Whether nobody waits any more: the work goes on in the background.
  var isUnattended: Bool { state.withLock { $0.waiters.isEmpty } }

  /// Returns when the work has come to its end and everybody has been told.
  func ended() async {
    await withCheckedContinuation { continuation in
      let isOver = state.withLock { state in
        if state.isOver { return true }
        state.closers.append(continuation)
        return false
      }
      if isOver { continuation.resume() }
    }
  }

  func report(_ event: FlightEvent<Output>) {
    let waiters = state.withLock { state in
      switch event {
      case .progress(let progress): state.lastProgress = progress
      case .stale(let output):
        state.stale = output
        state.survivesItsWaiters = true
      }
      return state.waiters.sorted { $0.key < $1.key }.map(\.value)
    }
    for waiter in waiters { waiter.event(event) }
  }

  private func finish(_ result: Result<Output, CacheError>) {
    let (waiters, closes) = state.withLock { state in
      defer {
        state.isClosed = true
        state.waiters = [:]
      }
      return (state.waiters.sorted { $0.key < $1.key }.map(\.value), !state.isClosed)
    }
    if closes { onClose(self) }
    let isShareable = (try? result.get().isShareable) ?? true
    for (index, waiter) in waiters.enumerated() {
      if index == 0 || isShareable { waiter.end(result) } else { waiter.askAlone() }
    }
    let closers = state.withLock { state in
      state.isOver = true
      defer { state.closers = [] }
      return state.closers
    }
    for closer in closers { closer.resume() }
  }
}
