public import CacheCore

/// A load under way, as the callback form returns it. Letting go of it does not end the load.
public final class LoadTask: Sendable {
  private enum State {
    case waiting
    case joined(leave: @Sendable (Departure) -> Void)
    case cancelled(CacheError)
    case ended
  }

  private let state = Lock(State.waiting)
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
    state.withLock { if case .cancelled(let error) = $0 { error.isCancellation } else { false } }
  }

  /// A latch: what comes before the load is joined to a flight is carried out on joining.
  func end(with error: CacheError) {
    let leave = state.withLock { state -> (@Sendable (Departure) -> Void)? in
      switch state {
      case .waiting:
        state = .cancelled(error)
        return nil
      case .joined(let leave):
        state = .cancelled(error)
        return leave
      case .cancelled, .ended: return nil
      }
    }
    leave?(.failed(error))
  }

  /// Links the load to what it waits for. May be called again when a follower has to ask for itself.
  func link(_ leave: @escaping @Sendable (Departure) -> Void) {
    let departure = state.withLock { state -> Departure? in
      switch state {
      case .waiting, .joined:
        state = .joined(leave: leave)
        return nil
      case .cancelled(let error): return .failed(error)
      case .ended: return .satisfied
      }
    }
    if let departure { leave(departure) }
  }

  /// The load has its outcome: what it waited for goes on, if at all, without it.
  func finish() {
    let leave = state.withLock { state -> (@Sendable (Departure) -> Void)? in
      switch state {
      case .joined(let leave):
        state = .ended
        return leave
      case .waiting:
        state = .ended
        return nil
      case .cancelled, .ended: return nil
      }
    }
    leave?(.satisfied)
  }
}
