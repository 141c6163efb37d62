/// The priority of a load, as a handle: it may be raised while the request waits or runs.
public final class LoadPriority: Sendable {
  /// The levels of priority.
  public enum Level: Int, Sendable, Hashable, Comparable, CaseIterable {
    case veryLow, low, normal, high, veryHigh

    public static func < (a: Self, b: Self) -> Bool { a.rawValue < b.rawValue }
  }

  /// The registration of an observer. It ends with ``cancel()``, at the latest when the observation is released.
  public final class Observation: Sendable {
    private let priority: LoadPriority
    private let id: UInt64

    fileprivate init(_ priority: LoadPriority, _ id: UInt64) { (self.priority, self.id) = (priority, id) }

    deinit { cancel() }

    /// Removes the observer and releases it, in O(1). Later calls do nothing.
    ///
    /// A raise that has begun on this or another thread may still call the observer, once.
    public func cancel() {
      let observer = priority.state.withLock { $0.observers.removeValue(forKey: id) }
      // Released after the lock: what the observer captures may run code of its own then.
      withExtendedLifetime(observer) {}
    }
  }

  private struct State {
    var level: Level
    var lastID: UInt64 = 0
    var observers: [UInt64: @Sendable (Level) -> Void] = [:]
  }

  private let state: Lock<State>

  /// A handle that starts at `level`.
  public init(_ level: Level = .normal) { state = Lock(State(level: level)) }

  /// The current level.
  public var level: Level { state.withLock { $0.level } }

  /// The number of observers.
  package var observers: Int { state.withLock { $0.observers.count } }

  /// Raises the level. Never lowers it, since other loads may wait for the same transfer.
  ///
  /// Returns after every observer was called, in the order of registration.
  public func raise(to level: Level) {
    let observers: [UInt64: @Sendable (Level) -> Void] = state.withLock { state in
      guard level > state.level else { return [:] }
      state.level = level
      return state.observers
    }
    for (_, observer) in observers.sorted(by: { $0.key < $1.key }) { observer(level) }
  }

  /// Calls `observer` with the new level at each raise from now on, until the observation ends.
  ///
  /// Keep the observation while the observer is needed. The observer captures the observation's owner weakly.
  ///
  /// - Parameter observer: called on the thread that raises, without a lock held. Two concurrent raises may call it in
  ///   either order, so it ignores a level below an earlier one.
  public func onRaise(_ observer: @escaping @Sendable (Level) -> Void) -> Observation {
    let id = state.withLock { state in
      state.lastID += 1
      state.observers[state.lastID] = observer
      return state.lastID
    }
    return Observation(self, id)
  }
}
