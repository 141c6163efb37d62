#if Tool
import Etagere

/// The name of the pass that runs, for the progress bar of the demo.
final class DemoProgress: Sendable {
  private let pass: Lock<String>

  init(_ first: String) { pass = Lock(first) }

  var current: String { pass.withLock { $0 } }

  func begin(_ name: String) { pass.withLock { $0 = name } }
}
#endif
