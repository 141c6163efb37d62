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
    /// The deadline has passed.
    case expired(Expiry)
  }

  private struct State {
    var flight: Flight<Output>?
    /// The end of the current flight. A waiter that has received it may join another flight.
    var ending: Event?
    var stale: Output?
    /// The latest report. A slow consumer gets no others.
    var progress: LoadProgress?
    /// Whether the current flight has posted such an event, after which those from before the waiter joined are outdated.
    var hasHadStale = false
    var hasHadProgress = false
    /// Whether a load counts as running until the waiter has its last event.
    var isCounted = false
    /// The reason for which the waiter leaves as soon as it joins a flight.
    var pendingLeave: LeaveReason?
    /// Whether the waiter has received its last event.
    var isFinished = false
    var consumer: UnsafeContinuation<Event, Never>?
    var observation: LoadPriority.Observation?

    mutating func take() -> Event? {
      if let stale = stale.take() { return .stale(stale) }
      if let progress = progress.take() { return .progress(progress) }
      guard let ending = ending.take() else { return nil }
      (flight, hasHadStale, hasHadProgress) = (nil, false, false)
      return ending
    }

    /// Returns the consumer and its next event, if there are both.
    mutating func wake() -> (UnsafeContinuation<Event, Never>, Event)? {
      guard let consumer, let event = take() else { return nil }
      self.consumer = nil
      return (consumer, event)
    }
  }

  private let state: Lock<State>
  let priority: LoadPriority
  /// Whether the priority can be raised from outside while the waiter waits.
  let isRaisable: Bool
  /// Whether the waiter needs the body itself, and not only stored values.
  private let wantsBytes: Bool
  private let wantsProgress: Bool
  private let endsWithStale: Bool
  /// The table that counts the load, or `nil` if the load counts itself.
  private let counter: Flights?
  /// Receives the events about requests, for a flight that waits for this waiter's flight.
  private let forward: (@Sendable (FlightEvent<Output>) -> Void)?

  /// - Parameters:
  ///   - priority: The priority, which the flight takes over if it is higher.
  ///   - isRaisable: Whether the priority can be raised while the waiter waits.
  ///   - wantsBytes: Whether the waiter needs the body itself, and not only stored values.
  ///   - wantsProgress: Whether the waiter receives progress.
  ///   - endsWithStale: Whether a stale output is the end for this waiter.
  ///   - counter: The table that counts the load of the waiter, from ``Flights/beginLoad()`` to the last event. The executor of
  ///     a caller may be blocked, so its load does not count until the caller resumes.
  ///   - forward: Receives ``FlightEvent/foundFallback`` and ``FlightEvent/inFlight(_:)``.
  init(
    _ priority: LoadPriority, isRaisable: Bool = true, wantsBytes: Bool = true, wantsProgress: Bool = false,
    endsWithStale: Bool = true, countedBy counter: Flights? = nil, forward: (@Sendable (FlightEvent<Output>) -> Void)? = nil
  ) {
    self.counter = counter
    (self.priority, self.isRaisable) = (priority, isRaisable)
    (self.wantsBytes, self.wantsProgress, self.endsWithStale) = (wantsBytes, wantsProgress, endsWithStale)
    self.forward = forward
    state = Lock(State(isCounted: counter != nil))
  }

  /// Whether an output satisfies the needs of the waiter.
  func accepts(_ output: Output) -> Bool { !(wantsBytes && output.isBodyLeft) }

  /// Whether this stale output is the end for the waiter.
  func ends(with stale: Output) -> Bool { endsWithStale && accepts(stale) }

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
    // The outputs are released outside the lock, because they may hold the last reference to a caller's object.
    let (flight, observation, isCounted, _, _) = state.withLock { state in
      state.isFinished = true
      defer { (state.flight, state.observation, state.stale, state.ending, state.isCounted) = (nil, nil, nil, nil, false) }
      return (state.flight, state.observation, state.isCounted, state.stale, state.ending)
    }
    observation?.cancel()
    flight?.leave(self, .satisfied)
    if isCounted { counter?.endLoad() }
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
    switch event {
    case .progress(let progress): if wantsProgress { post(progress, isEarlier: false) }
    case .stale(let output): post(output, isEarlier: false)
    case .foundFallback, .inFlight: forward?(event)
    }
  }

  /// Posts what a flight has reported before the waiter joined it, unless the flight has reported something newer since then.
  func catchUp(_ stale: Output?, _ progress: LoadProgress?) {
    if let stale { post(stale, isEarlier: true) }
    if let progress, wantsProgress { post(progress, isEarlier: true) }
  }

  private func post(_ progress: LoadProgress, isEarlier: Bool) {
    let woken = state.withLock { state in
      guard !isEarlier || !state.hasHadProgress else { return (UnsafeContinuation<Event, Never>, Event)?.none }
      (state.progress, state.hasHadProgress) = (progress, true)
      return state.wake()
    }
    if let (consumer, event) = woken { consumer.resume(returning: event) }
  }

  private func post(_ stale: Output, isEarlier: Bool) {
    guard accepts(stale) else { return }
    let (woken, _) = state.withLock { state in
      guard !isEarlier || !state.hasHadStale else { return ((UnsafeContinuation<Event, Never>, Event)?.none, Output?.none) }
      let former = state.stale
      (state.stale, state.hasHadStale) = (stale, true)
      return (state.wake(), former)
    }
    if let (consumer, event) = woken { consumer.resume(returning: event) }
  }

  /// Ends the current flight for this waiter.
  func end(_ event: Event) {
    let isLast = isLast(event)
    let (woken, observation, isCounted) = state.withLock { state in
      state.ending = event
      let isCounted = isLast && state.isCounted
      if isLast { state.isCounted = false }
      return (state.wake(), state.observation.take(), isCounted)
    }
    observation?.cancel()
    if let (consumer, event) = woken { consumer.resume(returning: event) }
    if isCounted { counter?.endLoad() }
  }

  /// Whether the waiter joins no other flight after an event.
  private func isLast(_ event: Event) -> Bool {
    switch event {
    case .end(.success(let output)): accepts(output)
    case .end(.failure): true
    case .expired(let expiry): !expiry.hasFallback
    case .progress, .stale, .alone: false
    }
  }
}

/// The state of the work when the deadline of a waiter passed.
struct Expiry: Sendable {
  var error: CacheError
  /// Whether a stored response may be used.
  var hasFallback: Bool
  /// Whether a request is in flight, whose failure the deadline then is.
  var isInFlight: Bool
}
