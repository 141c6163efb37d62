#if Tool
import Etagere

/// The pass that runs and the number of passes before it, for the progress bar of a demo.
final class DemoProgress: Sendable {
  private struct State {
    var name: String
    var begun = 0
  }

  private let state: Lock<State>

  init(_ first: String) { state = Lock(State(name: first)) }

  /// The name of the pass that runs.
  var current: String { state.withLock { $0.name } }

  /// The number of passes that have ended. Passes run one after another.
  var finished: Int { state.withLock { max(0, $0.begun - 1) } }

  func begin(_ name: String) {
    state.withLock {
      $0.name = name
      $0.begun += 1
    }
  }
}
#endif
