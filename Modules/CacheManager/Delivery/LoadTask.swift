public import CacheCore

/// A running load, as returned by the calls that take a completion handler. Releasing the task does not end the load.
public final class LoadTask: Sendable {
  private enum Phase {
    case waiting
    case joined(Departure)
    case cancelled(CacheError)
    /// The deadline has passed, and the load has left its coalesced load or leaves the one that it joins.
    case expired(CacheError)
    case ended
  }

  /// The closure that leaves a coalesced load. It is in a structure because a bare closure is wrapped anew each time it passes a
  /// generic function.
  private struct Departure: Sendable {
    let leave: @Sendable (LeaveReason) -> Void
  }

  private struct State {
    var phase = Phase.waiting
    /// The current observation of the priority, or `nil` if there is no observer or the load has ended.
    var observation: LoadPriority.Observation?

    /// Ends the load.
    ///
    /// - Returns: The departure to call and the observation to release, both outside the lock.
    mutating func end(_ end: Phase) -> (Departure?, LoadPriority.Observation?) {
      defer { observation = nil }
      switch phase {
      case .waiting, .expired:
        phase = end
        return (nil, observation)
      case .joined(let departure):
        phase = end
        return (departure, observation)
      case .cancelled, .ended: return (nil, nil)
      }
    }
  }

  private let state = Lock(State())
  /// The identifier of the load in the events that an observer receives.
  public let id: LoadID
  /// The priority of the load, which can be raised while the load runs.
  public let priority: LoadPriority

  /// Whether a caller has the task, and can therefore raise its priority.
  let isHandedOut: Bool

  init(id: LoadID = LoadID(), priority: LoadPriority, isHandedOut: Bool = true) {
    self.id = id
    self.priority = priority
    self.isHandedOut = isHandedOut
  }

  /// Ends the load with a cancellation. The transfer stops if no other load waits for it. Does nothing after the load has ended.
  public func cancel() { end(with: .cancelled) }

  /// Whether ``cancel()`` was called before the load ended.
  public var isCancelled: Bool {
    state.withLock { if case .cancelled(let error) = $0.phase { error.isCancellation } else { false } }
  }

  /// Ends the load with `error`. If the load has not joined a coalesced load yet, it leaves as soon as it joins.
  func end(with error: CacheError) {
    let (departure, observation) = state.withLock { $0.end(.cancelled(error)) }
    observation?.cancel()
    departure?.leave(.failed(error))
  }

  /// Calls `observer` at each raise of the priority, until the load ends or another observer replaces this one.
  ///
  /// At any time, only one observer follows the priority. First it is the queue in which the load waits, then the coalesced load
  /// that it has joined.
  func observePriority(_ observer: @escaping @Sendable (LoadPriority.Level) -> Void) {
    let observation = priority.onRaise(observer)
    let former = state.withLock { state in
      switch state.phase {
      case .waiting, .joined, .expired:
        defer { state.observation = observation }
        return state.observation
      case .cancelled, .ended: return observation
      }
    }
    former?.cancel()
  }

  /// Links the load to the coalesced load that it waits for. Called again if the waiter needs a load of its own.
  func link(_ leave: @escaping @Sendable (LeaveReason) -> Void) {
    let reason = state.withLock { state -> LeaveReason? in
      switch state.phase {
      case .waiting, .joined:
        state.phase = .joined(Departure(leave: leave))
        return nil
      case .cancelled(let error): return .failed(error)
      case .expired(let error): return .expired(error)
      case .ended: return .satisfied
      }
    }
    if let reason { leave(reason) }
  }

  /// Leaves the coalesced load at the deadline, which is `error`, or as soon as the load joins one.
  func expire(with error: CacheError) {
    let departure = state.withLock { state -> Departure? in
      switch state.phase {
      case .waiting:
        state.phase = .expired(error)
        return nil
      case .joined(let departure):
        state.phase = .expired(error)
        return departure
      case .cancelled, .expired, .ended: return nil
      }
    }
    departure?.leave(.expired(error))
  }

  /// Lets the load join another coalesced load after its deadline.
  func rejoin() {
    state.withLock { state in
      if case .expired = state.phase { state.phase = .waiting }
    }
  }

  /// Ends the task after the load has its outcome. The work that the load waited for may continue without it.
  func finish() {
    let (departure, observation) = state.withLock { $0.end(.ended) }
    observation?.cancel()
    departure?.leave(.satisfied)
  }
}

/// The callbacks of one load, which run on their queue.
final class CallbackDelivery<Value: Sendable>: Sendable {
  private let queue: CallbackQueue
  private let progress: (@Sendable (LoadProgress) -> Void)?
  private let completion: @Sendable (Result<Resource<Value>, CacheError>) -> Void
  private let isCompleted = Lock(false)

  init(
    queue: CallbackQueue, progress: (@Sendable (LoadProgress) -> Void)?,
    completion: @escaping @Sendable (Result<Resource<Value>, CacheError>) -> Void
  ) {
    self.queue = queue
    self.progress = progress
    self.completion = completion
  }

  func report(_ event: ResourceEvent<Value>) {
    guard let progress, case .progress(let report) = event else { return }
    queue.execute {
      // The completion may have overtaken this report. For example, a cancellation on the main thread completes at once, and
      // reports that were queued before it run later.
      guard !self.isCompleted.withLock({ $0 }) else { return }
      progress(report)
    }
  }

  func complete(_ result: Result<Resource<Value>, CacheError>) {
    queue.execute {
      self.isCompleted.withLock { $0 = true }
      self.completion(result)
    }
  }
}
