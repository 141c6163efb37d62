public import CacheCore

/// A load under way, as the callback form returns it. Letting go of it does not end the load.
public final class LoadTask: Sendable {
  private enum Phase {
    case waiting
    case joined(leave: @Sendable (LeaveReason) -> Void)
    case cancelled(CacheError)
    case ended
  }

  private struct State {
    var phase = Phase.waiting
    /// What follows the priority now. Nil after the end.
    var observation: LoadPriority.Observation?

    /// Ends the load.
    ///
    /// - Returns: what to call, and what to release, outside the lock.
    mutating func end(_ end: Phase) -> (leave: (@Sendable (LeaveReason) -> Void)?, LoadPriority.Observation?) {
      defer { observation = nil }
      switch phase {
      case .waiting:
        phase = end
        return (nil, observation)
      case .joined(let leave):
        phase = end
        return (leave, observation)
      case .cancelled, .ended: return (nil, nil)
      }
    }
  }

  private let state = Lock(State())
  /// How urgent the load is; may be raised while it runs.
  public let priority: LoadPriority

  /// Whether somebody has the task, and may raise its priority.
  let isHandedOut: Bool

  init(priority: LoadPriority, isHandedOut: Bool = true) {
    self.priority = priority
    self.isHandedOut = isHandedOut
  }

  /// Ends the load with a cancellation. The transfer stops when nobody else waits for it. Does nothing after the end.
  public func cancel() { end(with: .cancelled) }

  /// Whether ``cancel()`` was called before the load had ended.
  public var isCancelled: Bool {
    state.withLock { if case .cancelled(let error) = $0.phase { error.isCancellation } else { false } }
  }

  /// A latch: what comes before the load is joined to a coalesced load is carried out on joining.
  func end(with error: CacheError) {
    let (leave, observation) = state.withLock { $0.end(.cancelled(error)) }
    observation?.cancel()
    leave?(.failed(error))
  }

  /// Calls `observer` at each raise of the priority, until the load ends or another observer replaces this one.
  ///
  /// One at a time follows the priority: the queue that the load waits in, then the coalesced load that it has joined.
  func observePriority(_ observer: @escaping @Sendable (LoadPriority.Level) -> Void) {
    let observation = priority.onRaise(observer)
    let former = state.withLock { state in
      switch state.phase {
      case .waiting, .joined:
        defer { state.observation = observation }
        return state.observation
      case .cancelled, .ended: return observation
      }
    }
    former?.cancel()
  }

  /// Links the load to what it waits for. May be called again when a follower has to ask for itself.
  func link(_ leave: @escaping @Sendable (LeaveReason) -> Void) {
    let departure = state.withLock { state -> LeaveReason? in
      switch state.phase {
      case .waiting, .joined:
        state.phase = .joined(leave: leave)
        return nil
      case .cancelled(let error): return .failed(error)
      case .ended: return .satisfied
      }
    }
    if let departure { leave(departure) }
  }

  /// The load has its outcome: what it waited for goes on, if at all, without it.
  func finish() {
    let (leave, observation) = state.withLock { $0.end(.ended) }
    observation?.cancel()
    leave?(.satisfied)
  }
}
