internal import CacheCore

/// A task that waits for the output of a flight. It pulls the events one by one, so no code of a caller runs under a lock.
///
/// A waiter may wait for several flights, one after the other: for one of its own if an output was for another waiter alone, or
/// for one without requests after its deadline. The cancellation and the deadline apply to whichever it waits for.
final class Waiter<Output: Shareable>: Sendable {
  enum Event: Sendable {
    case progress(LoadProgress)
    case stale(Output)
    case end(Result<Output, CacheError>)
    /// The output is for another waiter alone. This waiter needs a flight of its own.
    case alone
    /// The deadline has passed, which is this error.
    case expired(CacheError)
  }

  private struct State {
    var flight: Flight<Output>?
    /// The end of the current flight. A waiter that has received it may join another flight.
    var ending: Event?
    var stale: Output?
    var progress: [LoadProgress] = []
    var hasFallback = false
    var isInFlight = false
    /// The reason for which the waiter leaves as soon as it joins a flight.
    var pendingLeave: LeaveReason?
    /// Whether the waiter has received its last event.
    var isFinished = false
    var consumer: UnsafeContinuation<Event, Never>?
    var observation: LoadPriority.Observation?

    mutating func take() -> Event? {
      if let stale = stale.take() { return .stale(stale) }
      if !progress.isEmpty { return .progress(progress.removeFirst()) }
      guard let ending = ending.take() else { return nil }
      flight = nil
      if case .alone = ending { (hasFallback, isInFlight) = (false, false) }
      return ending
    }

    /// Returns the consumer and its next event, if there are both.
    mutating func wake() -> (UnsafeContinuation<Event, Never>, Event)? {
      guard let consumer, let event = take() else { return nil }
      self.consumer = nil
      return (consumer, event)
    }
  }

  private let state = Lock(State())
  let priority: LoadPriority
  /// Whether the priority can be raised from outside while the waiter waits.
  let isRaisable: Bool
  /// Whether the waiter needs the body itself, and not only stored values.
  private let wantsBytes: Bool
  private let wantsProgress: Bool
  private let endsWithStale: Bool
  /// Receives the events about requests, for a flight that waits for this waiter's flight.
  private let forward: (@Sendable (FlightEvent<Output>) -> Void)?

  /// - Parameters:
  ///   - priority: The priority, which the flight takes over if it is higher.
  ///   - isRaisable: Whether the priority can be raised while the waiter waits.
  ///   - wantsBytes: Whether the waiter needs the body itself, and not only stored values.
  ///   - wantsProgress: Whether the waiter receives progress.
  ///   - endsWithStale: Whether a stale output is the end for this waiter.
  ///   - forward: Receives ``FlightEvent/foundFallback`` and ``FlightEvent/inFlight(_:)``.
  init(
    _ priority: LoadPriority, isRaisable: Bool = true, wantsBytes: Bool = true, wantsProgress: Bool = false,
    endsWithStale: Bool = true, forward: (@Sendable (FlightEvent<Output>) -> Void)? = nil
  ) {
    (self.priority, self.isRaisable) = (priority, isRaisable)
    (self.wantsBytes, self.wantsProgress, self.endsWithStale) = (wantsBytes, wantsProgress, endsWithStale)
    self.forward = forward
  }

  /// Whether an output satisfies the needs of the waiter.
  func accepts(_ output: Output) -> Bool { !(wantsBytes && output.isBodyLeft) }

  /// Whether this stale output is the end for the waiter.
  func ends(with stale: Output) -> Bool { endsWithStale && accepts(stale) }

  /// Whether a stored response may be used at the deadline.
  var hasFallback: Bool { state.withLock { $0.hasFallback } }

  /// Whether a request is in flight, whose failure the deadline then is.
  var isInFlight: Bool { state.withLock { $0.isInFlight } }

  // MARK: The waiting task

  /// Waits for the next event.
  func next() async -> Event {
    await withUnsafeContinuation { continuation in
      let event = state.withLock { state -> Event? in
        if let event = state.take() { return event }
        state.consumer = continuation
        return nil
      }
      if let event { continuation.resume(returning: event) }
    }
  }

  /// Waits for the end of a flight that has no other events, or for the cancellation of the calling task.
  func ending() async -> Event {
    await whileWaiting { await next() }
  }

  /// Runs a wait in the calling task, whose cancellation ends it.
  func whileWaiting<Result>(_ wait: () async -> Result) async -> Result {
    defer { finish() }
    return await withTaskCancellationHandler {
      await wait()
    } onCancel: {
      leave(.failed(.cancelled))
    }
  }

  /// Ends the wait after the last event that the waiter needs. The work continues without it.
  func finish() {
    let (flight, observation) = state.withLock { state in
      state.isFinished = true
      defer { (state.flight, state.observation, state.stale) = (nil, nil, nil) }
      return (state.flight, state.observation)
    }
    observation?.cancel()
    flight?.leave(self, .satisfied)
  }

  /// Leaves the current flight, or the one that the waiter is about to join.
  func leave(_ reason: LeaveReason) {
    let flight = state.withLock { state -> Flight<Output>? in
      guard !state.isFinished else { return nil }
      if let flight = state.flight, state.ending == nil { return flight }
      // A cancellation outlasts a deadline.
      if case .failed = state.pendingLeave {} else { state.pendingLeave = reason }
      return nil
    }
    flight?.leave(self, reason)
  }

  // MARK: The flight

  /// Links the waiter to a flight, which has it in its list already.
  func joined(_ flight: Flight<Output>) {
    let (pending, former) = state.withLock { state in
      state.flight = flight
      defer { (state.pendingLeave, state.observation) = (nil, nil) }
      return (state.pendingLeave, state.observation)
    }
    former?.cancel()
    if isRaisable {
      let observation = priority.onRaise { [weak flight] in flight?.raise(to: $0) }
      let isLate = state.withLock { state in
        let isLate = state.isFinished || state.flight == nil || state.ending != nil
        if !isLate { state.observation = observation }
        return isLate
      }
      if isLate { observation.cancel() }
    }
    // The raise follows the registration, because the observer does not receive earlier raises.
    flight.raise(to: priority.level)
    if let pending { flight.leave(self, pending) }
  }

  func post(_ event: FlightEvent<Output>) {
    let woken = state.withLock { state in
      switch event {
      case .progress(let progress): if wantsProgress { state.progress.append(progress) }
      case .stale(let output): if accepts(output) { state.stale = output }
      case .foundFallback: state.hasFallback = true
      case .inFlight(let isInFlight): state.isInFlight = isInFlight
      }
      return state.wake()
    }
    if let (consumer, event) = woken { consumer.resume(returning: event) }
    guard let forward else { return }
    switch event {
    case .foundFallback, .inFlight: forward(event)
    case .progress, .stale: break
    }
  }

  /// Ends the current flight for this waiter.
  func end(_ event: Event) {
    let (woken, observation) = state.withLock { state in
      state.ending = event
      return (state.wake(), state.observation.take())
    }
    observation?.cancel()
    if let (consumer, event) = woken { consumer.resume(returning: event) }
  }
}
