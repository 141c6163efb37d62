/// How urgent a load is: a live handle that may rise while the request is queued or under way.
public final class LoadPriority: Sendable {
  /// Steps of urgency.
  public enum Level: Int, Sendable, Hashable, Comparable, CaseIterable {
    case veryLow, low, normal, high, veryHigh

    public static func < (a: Self, b: Self) -> Bool { a.rawValue < b.rawValue }
  }

  private struct State {
    var level: Level
    var observers: [@Sendable (Level) -> Void] = []
  }

  private let state: Lock<State>

  /// A handle that starts at `level`.
  public init(_ level: Level = .normal) { state = Lock(State(level: level)) }

  /// The urgency now.
  public var level: Level { state.withLock { $0.level } }

  /// Raises the urgency; never lowers it, since others may wait for the same transfer.
  public func raise(to level: Level) {
    let observers: [@Sendable (Level) -> Void] = state.withLock { state in
      guard level > state.level else { return [] }
      state.level = level
      return state.observers
    }
    for observer in observers { observer(level) }
  }

  /// Calls `observer` at each rise from now on, held as long as the handle lives.
  public func onRaise(_ observer: @escaping @Sendable (Level) -> Void) { state.withLock { $0.observers.append(observer) } }
}
