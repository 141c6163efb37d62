internal import Dispatch

/// A moment that the first answers after opening have to themselves: an index that is read, or a list that is made, competes with
/// them for processors.
final class StartupGate: Sendable {
  private static let length = DispatchTimeInterval.milliseconds(20)

  private let isOver = DispatchSemaphore(value: 0)

  /// Returns when the moment is over.
  func wait() { _ = isOver.wait(timeout: .now() + Self.length) }

  /// Somebody waits for what comes after it.
  func end() { isOver.signal() }
}
