internal import CacheCore
internal import Synchronization

/// A flight of any output type, as ``Flights`` knows it.
protocol AnyFlight: AnyObject, Sendable {
  var key: FlightKey? { get }
  var resource: String? { get }
  var number: Int { get }
  var logPosition: Int { get }
  var hasOtherURLs: Bool { get }
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

  /// The state of a waiter.
  private enum Phase {
    /// It handles an event, or does not wait yet.
    case busy
    /// It waits for the next event.
    case suspended(Resumption<Event>)
    /// The flight has ended for it, and it has not received the ending.
    case ended(Waiter<Output>.Ending)
    /// It has received its ending.
    case done
  }

  private struct Slot {
    let number: Int
    var needs: WaiterNeeds<Output>
    var phase: Phase
    /// Whether the waiter has not received the latest progress. A slow consumer gets no other.
    var hasProgress = false
    /// Whether the waiter has not received the stale output.
    var hasStale = false

    /// Whether the flight has not ended for the waiter.
    var isAwaiting: Bool {
      switch phase {
      case .busy, .suspended: true
      case .ended, .done: false
      }
    }

    /// Passes an event to a waiting task. Returns `false` if there is none.
    mutating func wake(_ event: Event, _ effects: inout Effects) -> Bool {
      guard case .suspended(let continuation) = phase else { return false }
      phase = .busy
      effects.wakes.append((continuation, event))
      return true
    }
  }

  private struct State {
    /// The waiters in the order of their numbers. Those that are done are removed together, because removing each of many would
    /// move the others each time.
    var slots: [Slot]
    /// The number of waiters for which the flight has not ended.
    var awaiting: Int
    /// The number of waiters that are done.
    var done = 0
    var task: Task<Void, Never>?
    /// Whether the flight accepts no more waiters.
    var isClosed = false
    /// Whether the manager is closing. The work then ends with its last waiter.
    var isRetired: Bool
    /// Whether the waiters can no longer leave.
    var keepsWaiters = false
    /// Whether the priority was raised.
    var isRaised = false
    var progress: LoadProgress?
    var stale: Output?
    var hasFallback = false
    var isInFlight = false

    init(first needs: WaiterNeeds<Output>?, isRetired: Bool) {
      slots = needs.map { [Slot(number: 0, needs: $0, phase: .busy)] } ?? []
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

    /// Adds a waiter, and returns its index.
    mutating func add(_ slot: Slot) -> Int {
      awaiting += 1
      slots.append(slot)
      // Waiters that join at the same moment may arrive in another order than that of their numbers.
      var index = slots.count - 1
      while index > 0, slots[index - 1].number > slot.number {
        slots.swapAt(index - 1, index)
        index -= 1
      }
      return index
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
      switch slots[index].phase {
      case .busy, .suspended: return nil
      case .ended(let ending):
        finish(index)
        return .ended(ending)
      case .done: return .ended(.failed(.cancelled))
      }
    }

    /// Ends the flight for a waiter.
    mutating func end(_ index: Int, _ ending: Waiter<Output>.Ending, _ effects: inout Effects) {
      awaiting -= 1
      if slots[index].needs.isCounted, slots[index].needs.isLast(ending) { effects.endedLoads += 1 }
      if slots[index].wake(.ended(ending), &effects) { finish(index) } else { slots[index].phase = .ended(ending) }
    }

    private mutating func finish(_ index: Int) {
      slots[index].phase = .done
      // The waiting task has the needs too, so this releases no last reference to an object under the lock.
      slots[index].needs = WaiterNeeds()
      done += 1
    }

    mutating func removeDone() {
      guard 2 * done > slots.count else { return }
      slots.removeAll { if case .done = $0.phase { true } else { false } }
      done = 0
    }
  }

  /// The consequences of a change, which follow outside the lock.
  private struct Effects {
    var wakes: [(waiting: Resumption<Event>, event: Event)] = []
    var endedLoads = 0
    /// Whether the work is cancelled, because no waiter needs it.
    var isCancelled = false
    var task: Task<Void, Never>?
    /// An output that was replaced. It may hold the last reference to a caller's object.
    var former: Output?
  }

  private let state: Lock<State>
  /// Whether the work was cancelled. It changes under the lock.
  private let isCancelled = Atomic(false)
  /// Whether the work continues without waiters. It changes under the lock.
  private let survives: Atomic<Bool>
  /// Whether the work has requested another URL than that of the load. It changes under the lock.
  private let otherURLs = Atomic(false)
  var hasOtherURLs: Bool { otherURLs.load(ordering: .acquiring) }
  /// The number of the latest waiter.
  private let lastNumber = Atomic(0)
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
    priority: LoadPriority, representation: RequestedRepresentation? = nil, isRetired: Bool, first needs: WaiterNeeds<Output>?
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
  ///   - work: The work, which calls ``end(_:)`` with its result.
  func start(
    on executor: (any TaskExecutor)? = nil, isImmediate: Bool = true,
    _ work: @escaping @Sendable @isolated(any) () async -> Void
  ) {
    guard !isCancelled.load(ordering: .acquiring) else { return end(.failure(.cancelled)) }
    let task = Task.begun(on: executor, priority: TaskPriority(priority.level), isImmediate: isImmediate, work)
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
    for (waiting, event) in effects.wakes { waiting.resume(returning: event) }
    if effects.endedLoads > 0 { flights.endLoads(effects.endedLoads) }
    return value
  }

  // MARK: Waiters

  /// Adds a waiter, which first receives the stale output and the latest progress, if there are any.
  ///
  /// - Returns: `nil` if the flight accepts no more waiters.
  func join(_ needs: WaiterNeeds<Output>) -> Waiter<Output>? {
    let number = nextNumber()
    let joined = change { state, effects in
      let isJoined = add(number, needs, .busy, &state, &effects) != nil
      return isJoined ? (hasFallback: state.hasFallback, isInFlight: state.isInFlight, hasOtherURLs: hasOtherURLs) : nil
    }
    guard let joined else { return nil }
    if joined.hasOtherURLs { needs.forward?(.otherURL) }
    if joined.hasFallback { needs.forward?(.foundFallback) }
    if joined.isInFlight, let forward = needs.forward {
      forward(.inFlight(true))
      // The request may have ended in the meantime, and the waiter may have received that before.
      if !state.withLock({ $0.isInFlight }) { forward(.inFlight(false)) }
    }
    return Waiter(flight: self, number: number, needs: needs)
  }

  /// Adds a waiter without progress, priority and function to forward to, and waits for its ending in the calling task, whose
  /// cancellation ends the wait. Returns `nil` if the flight accepts no more waiters.
  func ending(_ needs: WaiterNeeds<Output>) async -> Waiter<Output>.Ending? {
    let number = nextNumber()
    var isAccepted = true
    return await withTaskCancellationHandler {
      var event = await withResumption { continuation in
        change { state, effects in
          guard let index = add(number, needs, .suspended(continuation), &state, &effects) else {
            isAccepted = false
            return effects.wakes.append((continuation, .ended(.alone)))
          }
          // A cancellation that found no waiter with this number precedes this step, so it is visible here.
          guard Task.isCancelled, !state.keepsWaiters, state.slots[index].isAwaiting else { return }
          state.end(index, .failed(.cancelled), &effects)
          cancelIfUnattended(&state, &effects)
        }
      }
      while true {
        if case .ended(let ending) = event { return isAccepted ? ending : nil }
        event = await next(number)
      }
    } onCancel: {
      leave(number, .cancelled, atDeadline: false)
    }
  }

  private func nextNumber() -> Int { lastNumber.add(1, ordering: .relaxed).newValue }

  /// Adds a waiter, unless the flight accepts no more, and returns its index.
  private func add(
    _ number: Int, _ needs: WaiterNeeds<Output>, _ phase: Phase, _ state: inout State, _ effects: inout Effects
  ) -> Int? {
    guard !state.isClosed else { return nil }
    let index = state.add(Slot(number: number, needs: needs, phase: phase))
    if needs.wantsProgress { state.slots[index].hasProgress = state.progress != nil }
    guard let stale = state.stale, needs.accepts(stale) else { return index }
    if needs.endsWithStale {
      survives.store(true, ordering: .releasing)
      state.end(index, .output(stale), &effects)
      cancelIfUnattended(&state, &effects)
    } else {
      state.slots[index].hasStale = true
    }
    return index
  }

  /// Waits for the next event of a waiter.
  func next(_ number: Int) async -> Event {
    await withResumption { continuation in
      let event = state.withLock { state -> Event? in
        guard let index = state.index(of: number) else { return .ended(.failed(.cancelled)) }
        guard let event = state.takeEvent(at: index) else {
          state.slots[index].phase = .suspended(continuation)
          return nil
        }
        state.removeDone()
        return event
      }
      if let event { continuation.resume(returning: event) }
    }
  }

  /// Removes one waiter and does not affect the other waiters. Does nothing if the flight keeps its waiters or has ended for it.
  func leave(_ number: Int, _ error: CacheError, atDeadline: Bool) {
    change { state, effects in
      guard !state.keepsWaiters, let index = state.index(of: number), state.slots[index].isAwaiting else { return }
      let ending: Waiter<Output>.Ending =
        atDeadline ? .expired(error, hasFallback: state.hasFallback, isInFlight: state.isInFlight) : .failed(error)
      state.end(index, ending, &effects)
      cancelIfUnattended(&state, &effects)
    }
  }

  /// Stops waiters from leaving, because the output is about to be made. Every present waiter gets it, and a cancellation comes
  /// too late. Returns `false` if no waiter is left.
  func keepWaiters() -> Bool {
    state.withLock { state in
      state.keepsWaiters = state.awaiting > 0
      return state.keepsWaiters
    }
  }

  /// The number of waiters for which the flight has not ended.
  var awaiting: Int { state.withLock { $0.awaiting } }

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
      case .otherURL: otherURLs.store(true, ordering: .releasing)
      }
      for index in state.slots.indices where state.slots[index].isAwaiting {
        let needs = state.slots[index].needs
        switch event {
        case .progress(let progress):
          guard needs.wantsProgress else { continue }
          state.slots[index].hasProgress = !state.slots[index].wake(.progress(progress), &effects)
        case .stale(let output) where needs.accepts(output) && needs.endsWithStale && !state.keepsWaiters:
          // The work that obtains the fresh output continues without the waiter.
          survives.store(true, ordering: .releasing)
          state.end(index, .output(output), &effects)
        case .stale(let output):
          state.slots[index].hasStale = needs.accepts(output) && !state.slots[index].wake(.stale(output), &effects)
        case .foundFallback, .inFlight, .otherURL: if let forward = needs.forward { forwards.append(forward) }
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
      guard !state.keepsWaiters, state.awaiting > 0 else { return }
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

  /// Ends the flight for its waiters. The work calls this once.
  func end(_ result: Result<Output, CacheError>) {
    // A waiter belongs to a load that counts, or to another flight that runs. So closing does not end before the waiters have
    // the output.
    let closers = flights.end(self)
    let isShareable = (try? result.get().isShareable) ?? true
    let ending = Waiter<Output>.Ending(result)
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
