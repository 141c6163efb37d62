internal import Dispatch

/// A short delay after opening, in which the first lookups do not compete for processors with reading the index or listing the
/// files.
final class StartupGate: Sendable {
  private static let length = DispatchTimeInterval.milliseconds(20)

  private let isOver = DispatchSemaphore(value: 0)

  /// Returns when the delay is over.
  func wait() { _ = isOver.wait(timeout: .now() + Self.length) }

  /// Ends the delay because a caller needs the work behind it.
  func end() { isOver.signal() }
}
