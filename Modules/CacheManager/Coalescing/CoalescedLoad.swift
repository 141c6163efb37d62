internal import CacheCore

/// What happens during a coalesced load, before its end.
enum CoalescedLoadEvent<Output: Sendable>: Sendable {
  case progress(LoadProgress)
  /// An output that may be outdated; the final one follows.
  case stale(Output)

  /// Of two reports that nobody has taken yet the later one is enough.
  static func merge(_ earlier: Self, _ later: Self) -> Self? {
    if case .progress = earlier, case .progress = later { return later }
    return nil
  }
}

/// An output that says whether it may be handed to others than the first who asked.
protocol Shareable: Sendable {
  var isShareable: Bool { get }
}

/// Why a waiter leaves a coalesced load.
enum LeaveReason: Sendable {
  /// It is over for the waiter, with this error, which it is told.
  case failed(CacheError)
  /// It has what it needs (a stale value was enough): nothing more is told, and the work goes on without it.
  case satisfied
}

/// A coalesced load, whatever it brings.
protocol AnyCoalescedLoad: AnyObject, Sendable {
  func retire()
  func dismissWaiters(_ error: CacheError)
  func ended() async
}

/// One piece of work that many wait for. Ends exactly once for each of them.
///
/// Cancelling one waiter never cancels another. When the last one leaves, the work is cancelled and the coalesced load takes no
/// more waiters, so a request that comes then starts anew; but where somebody left satisfied by a stale value, the work that
/// brings the fresh one survives them all.
final class CoalescedLoad<Output: Shareable>: AnyCoalescedLoad {
  struct Waiter: Sendable {
    /// Takes an event in. Called in order, under the coalesced load's lock: it must put the event down and call nobody.
    var post: @Sendable (CoalescedLoadEvent<Output>) -> Void
    /// Delivers what was put down. Called outside the lock.
    var deliver: @Sendable () -> Void
    var end: @Sendable (Result<Output, CacheError>) -> Void
    /// Called in place of `end` when the outcome is the leader's alone: the waiter has to ask for itself.
    var askAlone: @Sendable () -> Void
  }

  private struct State {
    var waiters: [Int: Waiter] = [:]
    var nextToken = 0
    var task: Task<Void, Never>?
    /// No more waiters are taken.
    var isClosed = false
    var isCancelled = false
    var isOver = false
    /// The manager is closing: nothing survives its waiters any more.
    var isRetired = false
    var survivesItsWaiters = false
    /// Nobody leaves any more.
    var isSettled = false
    var lastProgress: LoadProgress?
    var stale: Output?
    var closers: [CheckedContinuation<Void, Never>] = []

    /// In the order in which they came.
    var waitersInOrder: [Waiter] {
      waiters.count < 2 ? Array(waiters.values) : waiters.sorted { $0.key < $1.key }.map(\.value)
    }

    /// Whether the work is to be cancelled now, since nobody needs it.
    mutating func cancelsWhenUnattended() -> Bool {
      guard waiters.isEmpty, !isCancelled, !isOver, isRetired || !survivesItsWaiters else { return false }
      isClosed = true
      isCancelled = true
      return true
    }
  }

  private let state = Lock(State())
  /// Counted in the order in which coalesced loads came to be. A coalesced load waits for earlier ones alone, so no two wait for
  /// each other.
  let number: Int
  /// What had been removed when it came to be: see ``InvalidationLog``.
  let logPosition: Int
  let priority: LoadPriority
  /// What is wanted of it; nil: everything.
  let representation: RequestedRepresentation?
  private let onClose: @Sendable (CoalescedLoad<Output>) -> Void
  private let onOver: @Sendable (CoalescedLoad<Output>) -> Void

  /// - Parameters:
  ///   - number: higher than that of every coalesced load before it.
  ///   - epoch: what had been removed by now.
  ///   - representation: the first one's; who joins adds to it.
  ///   - onClose: called once the coalesced load takes no more waiters; perhaps twice.
  ///   - onOver: called once everybody has been told.
  init(
    number: Int, logPosition: Int = 0, priority: LoadPriority, representation: RequestedRepresentation? = nil,
    onClose: @escaping @Sendable (CoalescedLoad<Output>) -> Void,
    onOver: @escaping @Sendable (CoalescedLoad<Output>) -> Void
  ) {
    self.number = number
    self.logPosition = logPosition
    self.priority = priority
    self.representation = representation
    self.onClose = onClose
    self.onOver = onOver
  }

  /// Starts the work; `body` gets the coalesced load to report to. Where everybody has left before, nothing is begun.
  ///
  /// On servers it begins on the caller's thread and leaves it at the first wait: planning takes microseconds, a change of
  /// threads tens of them. On Apple platforms, where the caller is often the main thread, it does not begin there.
  ///
  /// - Parameters:
  ///   - executor: where it goes on after a wait; nil: on the cooperative pool.
  ///   - body: the work.
  func start(
    on executor: (any TaskExecutor)? = nil,
    _ body: @escaping @Sendable (CoalescedLoad<Output>) async -> Result<Output, CacheError>
  ) {
    guard !state.withLock({ $0.isCancelled }) else { return finish(.failure(.cancelled)) }
    #if canImport(Darwin)
    let task = Task.detached(executorPreference: executor) { self.finish(await body(self)) }
    #else
    let task = Task.immediateDetached(executorPreference: executor) { self.finish(await body(self)) }
    #endif
    let isCancelled = state.withLock { state in
      state.task = task
      return state.isCancelled
    }
    if isCancelled { task.cancel() }
  }

  /// Joins, unless the coalesced load is over. What has happened so far is told first.
  ///
  /// - Returns: what ``leave(_:_:)`` takes.
  func join(_ waiter: Waiter) -> Int? {
    let token: Int? = state.withLock { state in
      guard !state.isClosed else { return nil }
      state.nextToken += 1
      state.waiters[state.nextToken] = waiter
      if let stale = state.stale { waiter.post(.stale(stale)) }
      if let progress = state.lastProgress { waiter.post(.progress(progress)) }
      return state.nextToken
    }
    if token != nil { waiter.deliver() }
    return token
  }

  /// Ends the waiting of one; the others do not notice. Does nothing for whom the coalesced load has ended.
  func leave(_ token: Int, _ departure: LeaveReason) {
    let (waiter, task, cancels) = state.withLock { state -> (Waiter?, Task<Void, Never>?, Bool) in
      guard !state.isSettled, let waiter = state.waiters.removeValue(forKey: token) else { return (nil, nil, false) }
      if case .satisfied = departure { state.survivesItsWaiters = true }
      return (waiter, state.task, state.cancelsWhenUnattended())
    }
    if cancels { cancel(task) }
    if let waiter, case .failed(let error) = departure { waiter.end(.failure(error)) }
  }

  /// The outcome is about to be made: who waits now gets it, and a cancel comes too late. False when nobody waits any more.
  func settle() -> Bool {
    state.withLock { state in
      state.isSettled = !state.waiters.isEmpty
      return state.isSettled
    }
  }

  /// The manager closes: the work is cancelled as soon as nobody waits for it, also where it would have survived.
  func retire() {
    let (task, cancels) = state.withLock { state in
      state.isRetired = true
      return (state.task, state.cancelsWhenUnattended())
    }
    if cancels { cancel(task) }
  }

  /// Every waiter leaves with `error`. Does nothing for waiters that are about to get the outcome.
  func dismissWaiters(_ error: CacheError) {
    for token in state.withLock({ Array($0.waiters.keys) }) { leave(token, .failed(error)) }
  }

  private func cancel(_ task: Task<Void, Never>?) {
    onClose(self)
    task?.cancel()
  }

  /// Whether more than one has waited for it, ever.
  var hasBeenShared: Bool { state.withLock { $0.nextToken > 1 } }

  /// Whether somebody was satisfied with a stale value: what comes of the work then, nobody may hear.
  var hasSatisfied: Bool { state.withLock { $0.survivesItsWaiters } }

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

  func report(_ event: CoalescedLoadEvent<Output>) {
    let waiters = state.withLock { state in
      switch event {
      case .progress(let progress): state.lastProgress = progress
      case .stale(let output): state.stale = output
      }
      let waiters = state.waitersInOrder
      for waiter in waiters { waiter.post(event) }
      return waiters
    }
    for waiter in waiters { waiter.deliver() }
  }

  private func finish(_ result: Result<Output, CacheError>) {
    let waiters = state.withLock { state in
      defer {
        state.isClosed = true
        state.waiters = [:]
      }
      return state.waitersInOrder
    }
    onClose(self)
    let isShareable = (try? result.get().isShareable) ?? true
    for (index, waiter) in waiters.enumerated() {
      if index == 0 || isShareable { waiter.end(result) } else { waiter.askAlone() }
    }
    onOver(self)
    let closers = state.withLock { state in
      state.isOver = true
      defer { state.closers = [] }
      return state.closers
    }
    for closer in closers { closer.resume() }
  }
}
