internal import CacheCore

/// An output that states whether waiters other than the first may receive it.
protocol Shareable: Sendable {
  var isShareable: Bool { get }
  /// Whether the output lacks the body, because stored values were enough for the waiters that the work knew.
  var isBodyLeft: Bool { get }
}

extension Shareable {
  var isBodyLeft: Bool { false }
}

/// An event of a flight before its end.
enum FlightEvent<Output: Sendable>: Sendable {
  case progress(LoadProgress)
  /// An output that may be outdated. The final output follows.
  case stale(Output)
  /// A stored response may be used if the work fails. The work reports it when it sends the request.
  case foundFallback
  /// Whether the downloader has a request of the work whose response has not ended.
  case inFlight(Bool)
}

/// The reason why a waiter leaves a flight.
enum LeaveReason: Sendable {
  /// The waiter ends with this error, which it receives.
  case failed(CacheError)
  /// The deadline of the waiter has passed, which is this error. The waiter receives ``Waiter/Event/expired(_:)``.
  case expired(CacheError)
  /// A stale output was enough for the waiter. It receives nothing more, and the work continues without it.
  case satisfied
}

/// A flight of any output type, as ``Flights`` knows it.
protocol AnyFlight: AnyObject, Sendable {
  var key: FlightKey? { get }
  var resource: String? { get }
  func retire()
  func dismissWaiters(_ error: CacheError)
}

/// One piece of work that many waiters share. It ends exactly once for each waiter.
///
/// Cancelling one waiter never cancels another. When the last waiter leaves, the work is cancelled and the flight accepts no more
/// waiters. A later request starts a new flight. If a waiter left because a stale output was enough, the work that obtains the
/// fresh output continues without waiters.
final class Flight<Output: Shareable>: AnyFlight {
  private struct State {
    /// The waiters in the order in which they joined.
    var waiters: [Waiter<Output>]
    var task: Task<Void, Never>?
    /// Whether the flight accepts no more waiters.
    var isClosed = false
    var isCancelled = false
    /// Whether the manager is closing. The work then ends with its last waiter.
    var isRetired: Bool
    var survivesItsWaiters: Bool
    /// Whether the waiters can no longer leave.
    var isSettled = false
    var progress: LoadProgress?
    var stale: Output?
    var hasFallback = false
    var isInFlight = false

    /// Closes the flight and returns `true` if the work must be cancelled now, because no waiter needs it.
    mutating func cancelsWhenUnattended() -> Bool {
      guard waiters.isEmpty, !isCancelled, isRetired || !survivesItsWaiters else { return false }
      isClosed = true
      isCancelled = true
      return true
    }
  }

  private let state: Lock<State>
  /// The identifier of the load that started the flight.
  let id: LoadID
  let key: FlightKey?
  /// The resource whose responses the work may store, or `nil` if it stores none by itself.
  let resource: String?
  /// The number of the flight in the order of creation. Flights of different purposes wait only for earlier ones
  /// (``Flights/joinOpen(_:before:_:)``), so two never wait for each other.
  let number: Int
  /// The position of the ``InvalidationLog`` when the flight was created.
  let logPosition: Int
  let priority: LoadPriority
  /// The representation that the waiters want, or `nil` for the bytes and a stored original.
  let representation: RequestedRepresentation?
  private let flights: Flights

  /// Creates a flight with its first waiter, or with none if the work does not depend on waiters.
  init(
    _ flights: Flights, _ key: FlightKey?, of resource: String?, id: LoadID, number: Int, logPosition: Int,
    priority: LoadPriority,
    representation: RequestedRepresentation? = nil, isRetired: Bool, first waiter: Waiter<Output>?
  ) {
    state = Lock(State(waiters: waiter.map { [$0] } ?? [], isRetired: isRetired, survivesItsWaiters: waiter == nil))
    (self.flights, self.key, self.resource, self.id, self.number) = (flights, key, resource, id, number)
    (self.logPosition, self.priority, self.representation) = (logPosition, priority, representation)
  }

  /// Starts the work in a task of its own. If every waiter has already left, no work starts.
  ///
  /// On servers the work begins on the caller's thread and leaves it at the first suspension. Planning takes microseconds, and a
  /// change of threads takes ten times as long. On Apple platforms the caller's thread is often the main thread, so the work
  /// begins on another one.
  ///
  /// - Parameters:
  ///   - executor: The executor on which the work continues after a suspension, or `nil` for the cooperative pool.
  ///   - isImmediate: Whether the work may begin on the caller's thread. The caller waits until the work suspends.
  ///   - work: The work.
  func start(
    on executor: (any TaskExecutor)? = nil, isImmediate: Bool = true,
    _ work: @escaping @Sendable (Flight) async -> Result<Output, CacheError>
  ) {
    guard !state.withLock({ $0.isCancelled }) else { return end(.failure(.cancelled)) }
    let level = priority.level
    let task = Task.begun(on: executor, priority: TaskPriority(level), isImmediate: isImmediate) { self.end(await work(self)) }
    let isCancelled = state.withLock { state in
      state.task = task
      return state.isCancelled || state.isRetired && state.cancelsWhenUnattended()
    }
    if isCancelled { task.cancel() }
    // A raise before the task was stored did not reach the task.
    if priority.level > level { task.escalate(to: priority.level) }
  }

  /// Raises the priority of the flight and of its task. Never lowers either.
  func raise(to level: LoadPriority.Level) {
    guard level > priority.level else { return }
    priority.raise(to: level)
    state.withLock { $0.task }?.escalate(to: level)
  }

  // MARK: Waiters

  /// Adds a waiter, which first receives the stale output and the latest progress, if there are any.
  ///
  /// - Returns: `false` if the flight accepts no more waiters.
  func join(_ waiter: Waiter<Output>) -> Bool {
    let joined = state.withLock { state -> (stale: Output?, progress: LoadProgress?, hasFallback: Bool, isInFlight: Bool)? in
      guard !state.isClosed else { return nil }
      if let stale = state.stale, waiter.ends(with: stale) {
        state.survivesItsWaiters = true
      } else {
        state.waiters.append(waiter)
      }
      return (state.stale, state.progress, state.hasFallback, state.isInFlight)
    }
    guard let joined else { return false }
    if let stale = joined.stale, waiter.ends(with: stale) {
      waiter.end(.end(.success(stale)))
      return true
    }
    if joined.hasFallback { waiter.post(.foundFallback) }
    if joined.isInFlight {
      waiter.post(.inFlight(true))
      // The request may have ended in the meantime, and the waiter may have received that before.
      if !state.withLock({ $0.isInFlight }) { waiter.post(.inFlight(false)) }
    }
    waiter.catchUp(joined.stale, joined.progress)
    return true
  }

  /// Removes one waiter and does not affect the other waiters. Does nothing if the flight is settled or has ended for the waiter.
  func leave(_ waiter: Waiter<Output>, _ reason: LeaveReason) {
    let left = state.withLock { state -> (task: Task<Void, Never>?, cancels: Bool, hasFallback: Bool, isInFlight: Bool)? in
      guard !state.isSettled, let index = state.waiters.firstIndex(where: { $0 === waiter }) else { return nil }
      state.waiters.remove(at: index)
      if case .satisfied = reason { state.survivesItsWaiters = true }
      return (state.task, state.cancelsWhenUnattended(), state.hasFallback, state.isInFlight)
    }
    guard let left else { return }
    if left.cancels { cancel(left.task) }
    switch reason {
    case .failed(let error): waiter.end(.end(.failure(error)))
    case .expired(let error):
      waiter.end(.expired(Expiry(error: error, hasFallback: left.hasFallback, isInFlight: left.isInFlight)))
    case .satisfied: break
    }
  }

  /// Stops waiters from leaving, because the output is about to be made. Every present waiter gets it, and a cancellation comes
  /// too late. Returns `false` if no waiter is left.
  func settle() -> Bool {
    state.withLock { state in
      state.isSettled = !state.waiters.isEmpty
      return state.isSettled
    }
  }

  /// Whether any waiter still waits for the output.
  var isAwaited: Bool { state.withLock { !$0.waiters.isEmpty } }

  /// Whether the output may not reach any waiter, because a stale one was enough for one of them.
  var survivesItsWaiters: Bool { state.withLock { $0.survivesItsWaiters } }

  func report(_ event: FlightEvent<Output>) {
    if case .stale(let output) = event { return reportStale(output) }
    let waiters = state.withLock { state in
      switch event {
      case .progress(let progress): state.progress = progress
      case .stale: break
      case .foundFallback: state.hasFallback = true
      case .inFlight(let isInFlight): state.isInFlight = isInFlight
      }
      return state.waiters
    }
    for waiter in waiters { waiter.post(event) }
  }

  /// Ends the waiters for which a stale output is enough, and reports it to the other waiters.
  private func reportStale(_ output: Output) {
    // The former output is released outside the lock, because it may hold the last reference to a caller's object.
    let (satisfied, others, _) = state.withLock { state in
      let former = state.stale
      state.stale = output
      let satisfied = state.isSettled ? [] : state.waiters.filter { $0.ends(with: output) }
      guard !satisfied.isEmpty else { return ([Waiter<Output>](), state.waiters, former) }
      // The work that obtains the fresh output continues without them.
      state.survivesItsWaiters = true
      state.waiters.removeAll { $0.ends(with: output) }
      return (satisfied, state.waiters, former)
    }
    for waiter in satisfied { waiter.end(.end(.success(output))) }
    for waiter in others { waiter.post(.stale(output)) }
  }

  // MARK: Ending

  /// Cancels the work as soon as no waiter is left, even if the work would have continued without waiters.
  func retire() {
    let (task, cancels) = state.withLock { state in
      state.isRetired = true
      // Work that has not started yet finds the flight retired.
      return (state.task, state.task != nil && state.cancelsWhenUnattended())
    }
    if cancels { cancel(task) }
  }

  /// Ends every waiter with `error`, and accepts no more. Does nothing for waiters that are about to get the output.
  func dismissWaiters(_ error: CacheError) {
    let waiters = state.withLock { state in
      state.isClosed = true
      return state.waiters
    }
    for waiter in waiters { leave(waiter, .failed(error)) }
  }

  private func cancel(_ task: Task<Void, Never>?) {
    flights.close(self)
    task?.cancel()
  }

  /// Ends the flight for its waiters. Work that a caller leads calls this itself.
  func end(_ result: Result<Output, CacheError>) {
    let waiters = state.withLock { state in
      state.isClosed = true
      defer { (state.waiters, state.task) = ([], nil) }
      return state.waiters
    }
    flights.close(self)
    let isShareable = (try? result.get().isShareable) ?? true
    for (index, waiter) in waiters.enumerated() { waiter.end(index == 0 || isShareable ? .end(result) : .alone) }
    flights.remove(self)
  }
}

extension Task where Failure == Never, Success == Void {
  /// Begins work on the caller's thread, or on another one where callers are often on the main thread.
  static func begun(
    on executor: (any TaskExecutor)? = nil, priority: TaskPriority, isImmediate: Bool = true,
    _ work: @escaping @Sendable () async -> Void
  ) -> Task {
    #if !canImport(Darwin)
    if isImmediate { return Task.immediateDetached(priority: priority, executorPreference: executor) { await work() } }
    #endif
    return Task.detached(executorPreference: executor, priority: priority) { await work() }
  }

  /// Raises the priority of the task, on systems that can raise it from outside the task.
  fileprivate func escalate(to level: LoadPriority.Level) {
    if #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) { escalatePriority(to: TaskPriority(level)) }
  }
}

extension TaskPriority {
  /// The priority of a task that works for a load of this level.
  ///
  /// On systems that cannot raise a task from outside, the priority is at least medium, because a visible load may join.
  init(_ level: LoadPriority.Level) {
    let priority: TaskPriority =
      switch level {
      case .veryLow: .background
      case .low: .utility
      case .normal: .medium
      case .high, .veryHigh: .high
      }
    if #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) {
      self = priority
    } else {
      self = max(priority, .medium)
    }
  }
}
