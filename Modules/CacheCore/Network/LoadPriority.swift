/// The priority of a load. It is a shared handle: it may be raised while the request waits or runs.
public final class LoadPriority: Sendable {
  /// The levels of priority.
  public enum Level: Int, Sendable, Hashable, Comparable, CaseIterable {
    case veryLow, low, normal, high, veryHigh

    public static func < (a: Self, b: Self) -> Bool { a.rawValue < b.rawValue }
  }

  /// The registration of an observer. It ends with ``cancel()`` or when the observation is released.
  public final class Observation: Sendable {
    private let priority: LoadPriority
    private let id: UInt64

    fileprivate init(_ priority: LoadPriority, _ id: UInt64) { (self.priority, self.id) = (priority, id) }

    deinit { cancel() }

    /// Removes the observer and releases it, in O(1). Later calls do nothing.
    ///
    /// A raise that is already running may still call the observer once.
    public func cancel() {
      let observer = priority.state.withLock { $0.observers.removeValue(forKey: id) }
      // Release the observer outside the lock, because its captured values may run their own code.
      withExtendedLifetime(observer) {}
    }
  }

  private struct State {
    var level: Level
    var lastID: UInt64 = 0
    var observers: [UInt64: @Sendable (Level) -> Void] = [:]
  }

  private let state: Lock<State>

  /// Creates a priority that starts at `level`.
  public init(_ level: Level = .normal) { state = Lock(State(level: level)) }

  /// The current level.
  public var level: Level { state.withLock { $0.level } }

  /// The number of observers.
  package var observers: Int { state.withLock { $0.observers.count } }

  /// Raises the level. It never lowers the level, because other loads may wait for the same transfer.
  ///
  /// It returns after all observers were called in the order of registration.
  public func raise(to level: Level) {
    let observers: [UInt64: @Sendable (Level) -> Void] = state.withLock { state in
      guard level > state.level else { return [:] }
      state.level = level
      return state.observers
    }
    for (_, observer) in observers.sorted(by: { $0.key < $1.key }) { observer(level) }
  }

  /// Calls `observer` with the new level on each raise, until the observation ends.
  ///
  /// Keep the observation while the observer is needed. The closure must not capture the observation's owner strongly.
  ///
  /// - Parameter observer: The closure to call, without a lock held, on the thread that raises the level. Concurrent raises may
  ///   call it in either order, so it must ignore a level below an earlier one.
  public func onRaise(_ observer: @escaping @Sendable (Level) -> Void) -> Observation {
    let id = state.withLock { state in
      state.lastID += 1
      state.observers[state.lastID] = observer
      return state.lastID
    }
    return Observation(self, id)
  }
}
