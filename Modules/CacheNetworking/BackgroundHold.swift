internal import CacheCore

/// Holds background time while transfers run: one piece of it, from the first one's start to the last one's end, or until the
/// system takes it back.
final class BackgroundHold: Sendable {
  private struct State {
    var running = 0
    /// Tells a late expiry from that of the piece that is held now.
    var piece = 0
    var giveBack: (@Sendable () -> Void)?
  }

  private let time: (any BackgroundTime)?
  private let state = Lock(State())

  init(_ time: (any BackgroundTime)?) { self.time = time }

  /// A transfer starts.
  func enter() {
    guard let time else { return }
    let piece: Int? = state.withLock { state in
      state.running += 1
      guard state.running == 1 else { return nil }
      state.piece += 1
      return state.piece
    }
    guard let piece else { return }
    let giveBack = time.begin { [weak self] in self?.end(piece) }
    let isOver = state.withLock { state in
      // All of them may have ended meanwhile, or others begun.
      guard state.piece == piece, state.running > 0 else { return true }
      state.giveBack = giveBack
      return false
    }
    if isOver { giveBack() }
  }

  /// A transfer has ended.
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

  /// The system takes the time back. What runs goes on when the app does; no new piece is asked for until all of it is over.
  private func end(_ piece: Int) {
    let giveBack: (@Sendable () -> Void)? = state.withLock { state in
      guard state.piece == piece else { return nil }
      // So that one who is just about to keep it sees that it is over.
      state.piece += 1
      defer { state.giveBack = nil }
      return state.giveBack
    }
    giveBack?()
  }
}
