internal import CacheCore

/// Background time held while transfers run. One period lasts from the start of the first transfer to the end of the last one, or
/// until the system ends it.
final class BackgroundHold: Sendable {
  private struct State {
    var running = 0
    /// The number of the current period. It tells a late expiration from one of the current period.
    var period = 0
    var giveBack: (@Sendable () -> Void)?
  }

  private let time: (any BackgroundTime)?
  private let state = Lock(State())

  init(_ time: (any BackgroundTime)?) { self.time = time }

  /// Records the start of a transfer. The first running transfer requests background time.
  func enter() {
    guard let time else { return }
    let period: Int? = state.withLock { state in
      state.running += 1
      guard state.running == 1 else { return nil }
      state.period += 1
      return state.period
    }
    guard let period else { return }
    let giveBack = time.begin { [weak self] in self?.end(period) }
    let isOver = state.withLock { state in
      // All transfers may have ended meanwhile, or a new period may have begun.
      guard state.period == period, state.running > 0 else { return true }
      state.giveBack = giveBack
      return false
    }
    if isOver { giveBack() }
  }

  /// Records the end of a transfer. The last one returns the background time.
  func leave() {
    guard time != nil else { return }
    let giveBack: (@Sendable () -> Void)? = state.withLock { state in
      state.running -= 1
      guard state.running == 0 else { return nil }
      defer { state.giveBack = nil }
      return state.giveBack
    }
    giveBack?()
  }

  /// Returns the time that the system has reclaimed. Running transfers continue when the app does. No new period is requested
  /// until all of them have ended.
  private func end(_ period: Int) {
    let giveBack: (@Sendable () -> Void)? = state.withLock { state in
      guard state.period == period else { return nil }
      // A concurrent `enter()` that is about to store its closure sees that the period is over.
      state.period += 1
      defer { state.giveBack = nil }
      return state.giveBack
    }
    giveBack?()
  }
}
