internal import CacheCore

/// Holds work until a test lets it go, and tells when it has arrived: order without waiting.
///
/// ```swift
/// let gate = Gate()
/// network.answer(url, .ok("slow").held(by: gate))
/// let load = Task { try await manager.load(url) }
/// await gate.arrived()   // the request is out, and unanswered
/// load.cancel()
/// gate.open()
/// ```
public final class Gate: Sendable {
  private struct State {
    var isOpen = false
    var arrivals = 0
    var held: [CheckedContinuation<Void, Never>] = []
    var watchers: [(count: Int, continuation: CheckedContinuation<Void, Never>)] = []
  }

  private let state = Lock(State())

  /// A closed gate.
  public init() {}

  /// Lets everybody through, now and from now on.
  public func open() {
    let held = state.withLock { state in
      state.isOpen = true
      defer { state.held = [] }
      return state.held
    }
    for continuation in held { continuation.resume() }
  }

  /// Returns once the gate is open.
  public func pass() async {
    await withCheckedContinuation { continuation in
      let (isOpen, content) = state.withLock { state in
        state.arrivals += 1
        let arrivals = state.arrivals
        let content = state.watchers.filter { $0.count <= arrivals }
        state.watchers.removeAll { $0.count <= arrivals }
        if !state.isOpen { state.held.append(continuation) }
        return (state.isOpen, content.map(\.continuation))
      }
      for watcher in content { watcher.resume() }
      if isOpen { continuation.resume() }
    }
  }

  /// Returns once `count` have come to the gate.
  public func arrived(_ count: Int = 1) async {
    await withCheckedContinuation { continuation in
      let isReady = state.withLock { state in
        guard state.arrivals < count else { return true }
        state.watchers.append((count, continuation))
        return false
      }
      if isReady { continuation.resume() }
    }
  }
}
