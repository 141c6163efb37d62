internal import CacheCore
internal import Synchronization

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
///
/// The lock of a flight protects its waiters too. No other lock is taken under it.
final class Flight<Output: Shareable>: AnyFlight {
  typealias Event = Waiter<Output>.Event

  private struct Slot {
    let number: Int
    var needs: WaiterNeeds<Output>
    /// Whether the waiter has not received the latest progress. A slow consumer gets no other.
    var hasProgress = false
    /// Whether the waiter has not received the stale output.
    var hasStale = false
    /// Whether the flight has not ended for the waiter.
    var isAwaiting = true
    /// The ending, until the waiter receives it.
    var ending: Waiter<Output>.Ending?
    /// Whether the waiter has received its ending.
    var isDone = false
    /// The waiting task, if there is no event for it.
    var consumer: UnsafeContinuation<Event, Never>?
  }

  private struct State {
    /// The waiters in the order in which they joined. Those that are done are removed together, because removing each of many
    /// would move the others each time.
    var slots: [Slot]
    /// The number of waiters for which the flight has not ended.
    var awaiting: Int
    /// The number of waiters that are done.
    var done = 0
    var lastNumber = 0
    var task: Task<Void, Never>?
    /// Whether the flight accepts no more waiters.
    var isClosed = false
    /// Whether the manager is closing. The work then ends with its last waiter.
    var isRetired: Bool
    /// Whether the waiters can no longer leave.
    var isSettled = false
    /// Whether the priority was raised.
    var isRaised = false
    var progress: LoadProgress?
    var stale: Output?
    var hasFallback = false
    var isInFlight = false

    init(first needs: WaiterNeeds<Output>?, isRetired: Bool) {
      slots = needs.map { [Slot(number: 0, needs: $0)] } ?? []
      awaiting = slots.count
      self.isRetired = isRetired
    }

    func index(of number: Int) -> Int? {
      var range = slots.indices
      while let first = range.first {
        let middle = first + range.count / 2
        if slots[middle].number == number { return middle }
        range = slots[middle].number < number ? middle + 1..<range.upperBound : first..<middle
      }
      return nil
    }

    /// Removes and returns the next event of a waiter.
    mutating func takeEvent(at index: Int) -> Event? {
      if slots[index].hasStale, let stale {
        slots[index].hasStale = false
        return .stale(stale)
      }
      if slots[index].hasProgress, let progress {
        slots[index].hasProgress = false
        return .progress(progress)
      }
      guard let ending = slots[index].ending.take() else { return nil }
      finish(index)
      return .ended(ending)
    }

    /// Ends the flight for a waiter.
    mutating func end(_ index: Int, _ ending: Waiter<Output>.Ending, _ effects: inout Effects) {
      slots[index].isAwaiting = false
      awaiting -= 1
      if slots[index].needs.isCounted, slots[index].needs.isLast(ending) { effects.endedLoads += 1 }
      if effects.wake(&slots[index].consumer, .ended(ending)) { finish(index) } else { slots[index].ending = ending }
    }

    private mutating func finish(_ index: Int) {
      slots[index].isDone = true
      // The waiting task has the needs too, so this releases no last reference to an object under the lock.
      slots[index].needs = WaiterNeeds()
      done += 1
    }

    mutating func removeDone() {
      guard 2 * done > slots.count else { return }
      slots.removeAll(where: \.isDone)
      done = 0
    }
  }

  /// The consequences of a change, which follow outside the lock.
  private struct Effects {
    var wakes: [(consumer: UnsafeContinuation<Event, Never>, event: Event)] = []
    var endedLoads = 0
    /// Whether the work is cancelled, because no waiter needs it.
    var isCancelled = false
    var task: Task<Void, Never>?
    /// An output that was replaced. It may hold the last reference to a caller's object.
    var former: Output?

    /// Passes an event to a waiting task. Returns `false` if there is none.
    mutating func wake(_ consumer: inout UnsafeContinuation<Event, Never>?, _ event: Event) -> Bool {
      guard let waiting = consumer.take() else { return false }
      wakes.append((waiting, event))
      return true
    }
  }

  private let state: Lock<State>
  /// Whether the work was cancelled. It changes under the lock.
  private let isCancelled = Atomic(false)
  /// Whether the work continues without waiters. It changes under the lock.
  private let survives: Atomic<Bool>
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

  /// Creates a flight with its first waiter, whose number is 0, or with none if the work does not depend on waiters.
  init(
    _ flights: Flights, _ key: FlightKey?, of resource: String?, id: LoadID, number: Int, logPosition: Int,
    priority: LoadPriority,
    representation: RequestedRepresentation? = nil, isRetired: Bool, first needs: WaiterNeeds<Output>?
  ) {
    state = Lock(State(first: needs, isRetired: isRetired))
    survives = Atomic(needs == nil)
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
    guard !isCancelled.load(ordering: .acquiring) else { return end(.failure(.cancelled)) }
    let task = Task.begun(on: executor, priority: TaskPriority(priority.level), isImmediate: isImmediate) {
      self.end(await work(self))
    }
    let isRaised = change { state, effects in
      state.task = task
      if state.isRetired { cancelIfUnattended(&state, &effects) }
      // A cancellation before the task was stored did not reach the task.
      if isCancelled.load(ordering: .relaxed) { (effects.isCancelled, effects.task) = (true, task) }
      return state.isRaised
    }
    // A raise before the task was stored did not reach the task either.
    if isRaised { task.escalate(to: priority.level) }
  }

  /// Raises the priority of the flight and of its task. Never lowers either.
  func raise(to level: LoadPriority.Level) {
    guard level > priority.level else { return }
    priority.raise(to: level)
    let task = state.withLock { state in
      state.isRaised = true
      return state.task
    }
    task?.escalate(to: level)
  }

  /// Changes the state under the lock, and lets the consequences follow outside it.
  private func change<Value>(_ body: (inout State, inout Effects) -> Value) -> Value {
    let (value, effects) = state.withLock { state in
      var effects = Effects()
      let value = body(&state, &effects)
      state.removeDone()
      return (value, effects)
    }
    if effects.isCancelled {
      flights.close(self)
      effects.task?.cancel()
    }
    for (consumer, event) in effects.wakes { consumer.resume(returning: event) }
    for _ in 0..<effects.endedLoads { flights.endLoad() }
    return value
  }

  // MARK: Waiters

  /// Adds a waiter, which first receives the stale output and the latest progress, if there are any.
  ///
  /// - Returns: `nil` if the flight accepts no more waiters.
  func join(_ needs: WaiterNeeds<Output>) -> Waiter<Output>? {
    let joined = change { state, effects -> (number: Int, hasFallback: Bool, isInFlight: Bool)? in
      guard !state.isClosed else { return nil }
      state.lastNumber += 1
      var slot = Slot(number: state.lastNumber, needs: needs)
      slot.hasProgress = needs.wantsProgress && state.progress != nil
      let stale = state.stale.flatMap { needs.accepts($0) ? $0 : nil }
      slot.hasStale = stale != nil && !needs.endsWithStale
      state.slots.append(slot)
      state.awaiting += 1
      if let stale, needs.endsWithStale {
        survives.store(true, ordering: .releasing)
        state.end(state.slots.count - 1, .output(stale), &effects)
        cancelIfUnattended(&state, &effects)
      }
      return (slot.number, state.hasFallback, state.isInFlight)
    }
    guard let joined else { return nil }
    if joined.hasFallback { needs.forward?(.foundFallback) }
    if joined.isInFlight, let forward = needs.forward {
      forward(.inFlight(true))
      // The request may have ended in the meantime, and the waiter may have received that before.
      if !state.withLock({ $0.isInFlight }) { forward(.inFlight(false)) }
    }
    return Waiter(flight: self, number: joined.number, needs: needs)
  }

  /// Waits for the next event of a waiter.
  func next(_ number: Int) async -> Event {
    await withUnsafeContinuation { continuation in
      let event = state.withLock { state -> Event? in
        guard let index = state.index(of: number), !state.slots[index].isDone else { return .ended(.failed(.cancelled)) }
        guard let event = state.takeEvent(at: index) else {
          state.slots[index].consumer = continuation
          return nil
        }
        state.removeDone()
        return event
      }
      if let event { continuation.resume(returning: event) }
    }
  }

  /// Removes one waiter and does not affect the other waiters. Does nothing if the flight is settled or has ended for the waiter.
  func leave(_ number: Int, _ error: CacheError, atDeadline: Bool) {
    change { state, effects in
      guard !state.isSettled, let index = state.index(of: number), state.slots[index].isAwaiting else { return }
      let ending: Waiter<Output>.Ending =
        atDeadline ? .expired(error, hasFallback: state.hasFallback, isInFlight: state.isInFlight) : .failed(error)
      state.end(index, ending, &effects)
      cancelIfUnattended(&state, &effects)
    }
  }

  /// Stops waiters from leaving, because the output is about to be made. Every present waiter gets it, and a cancellation comes
  /// too late. Returns `false` if no waiter is left.
  func settle() -> Bool {
    state.withLock { state in
      state.isSettled = state.awaiting > 0
      return state.isSettled
    }
  }

  /// Whether any waiter still waits for the output.
  var isAwaited: Bool { state.withLock { $0.awaiting > 0 } }

  /// Whether the output may not reach any waiter, because a stale one was enough for one of them.
  var survivesItsWaiters: Bool { survives.load(ordering: .acquiring) }

  /// Passes an event on to the waiters. A stale output ends those for which it is enough.
  func report(_ event: FlightEvent<Output>) {
    let forwards = change { state, effects in
      var forwards: [@Sendable (FlightEvent<Output>) -> Void] = []
      switch event {
      case .progress(let progress): state.progress = progress
      case .stale(let output): (state.stale, effects.former) = (output, state.stale)
      case .foundFallback: state.hasFallback = true
      case .inFlight(let isInFlight): state.isInFlight = isInFlight
      }
      for index in state.slots.indices where state.slots[index].isAwaiting {
        let needs = state.slots[index].needs
        switch event {
        case .progress(let progress):
          guard needs.wantsProgress else { continue }
          state.slots[index].hasProgress = !effects.wake(&state.slots[index].consumer, .progress(progress))
        case .stale(let output) where needs.accepts(output) && needs.endsWithStale && !state.isSettled:
          // The work that obtains the fresh output continues without the waiter.
          survives.store(true, ordering: .releasing)
          state.end(index, .output(output), &effects)
        case .stale(let output):
          state.slots[index].hasStale =
            needs.accepts(output) && !effects.wake(&state.slots[index].consumer, .stale(output))
        case .foundFallback, .inFlight: if let forward = needs.forward { forwards.append(forward) }
        }
      }
      // The manager may be closing: a stale output was enough for the last waiter of a retired flight.
      if state.task != nil { cancelIfUnattended(&state, &effects) }
      return forwards
    }
    for forward in forwards { forward(event) }
  }

  // MARK: Ending

  /// Cancels the work as soon as no waiter is left, even if the work would have continued without waiters.
  func retire() {
    change { state, effects in
      state.isRetired = true
      // Work that has not started yet finds the flight retired.
      if state.task != nil { cancelIfUnattended(&state, &effects) }
    }
  }

  /// Ends every waiter with `error`, and accepts no more. Does nothing for waiters that are about to get the output.
  func dismissWaiters(_ error: CacheError) {
    change { state, effects in
      state.isClosed = true
      guard !state.isSettled, state.awaiting > 0 else { return }
      for index in state.slots.indices where state.slots[index].isAwaiting { state.end(index, .failed(error), &effects) }
      cancelIfUnattended(&state, &effects)
    }
  }

  /// Closes the flight and cancels the work if no waiter needs it.
  private func cancelIfUnattended(_ state: inout State, _ effects: inout Effects) {
    guard state.awaiting == 0, !isCancelled.load(ordering: .relaxed), state.isRetired || !survives.load(ordering: .relaxed)
    else { return }
    state.isClosed = true
    isCancelled.store(true, ordering: .releasing)
    (effects.isCancelled, effects.task) = (true, state.task)
  }

  /// Ends the flight for its waiters. Work that a caller leads calls this itself.
  func end(_ result: Result<Output, CacheError>) {
    // A waiter belongs to a load that counts, or to another flight that runs. So closing does not end before the waiters have
    // the output.
    let closers = flights.end(self)
    let isShareable = (try? result.get().isShareable) ?? true
    let ending: Waiter<Output>.Ending =
      switch result {
      case .success(let output): .output(output)
      case .failure(let error): .failed(error)
      }
    change { state, effects in
      state.isClosed = true
      state.task = nil
      var isFirst = true
      for index in state.slots.indices where state.slots[index].isAwaiting {
        state.end(index, isFirst || isShareable ? ending : .alone, &effects)
        isFirst = false
      }
    }
    for closer in closers { closer.resume() }
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
