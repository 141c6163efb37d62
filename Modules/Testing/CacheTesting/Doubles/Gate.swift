internal import CacheCore

/// A gate that suspends work until a test opens it, and reports arrivals. It replaces sleeps in tests of ordering.
///
/// ```swift
/// let gate = Gate()
/// network.respond(to: url, with: .ok("slow").held(by: gate))
/// let load = Task { try await manager.load(url) }
/// await gate.arrived()   // the request was sent, and the response is held back
/// load.cancel()
/// gate.open()
/// ```
public final class Gate: Sendable {
  private struct State: Sendable {
    var isOpen: Bool
    var arrivals = 0
    var passes = 0
    var held: [(id: Int, resume: @Sendable () -> Void)] = []
  }

  private let state: WatchedState<State>

  /// Creates a gate, which is closed by default.
  public init(isOpen: Bool = false) { state = WatchedState(State(isOpen: isOpen)) }

  /// Opens the gate for all current and later arrivals.
  public func open() {
    let held = state.update { state in
      state.isOpen = true
      defer { state.held = [] }
      return state.held.map(\.resume)
    }
    for resume in held { resume() }
  }

  /// Closes the gate for later arrivals.
  public func close() {
    state.update {
      $0.isOpen = false
      $0.passes = 0
    }
  }

  /// Lets the given number of arrivals through, oldest first. If fewer are held, the rest applies to later arrivals. An
  /// open gate is not changed.
  public func letThrough(_ count: Int = 1) {
    let held = state.update { state -> [@Sendable () -> Void] in
      guard !state.isOpen, count > 0 else { return [] }
      let now = state.held.prefix(count).map(\.resume)
      state.held.removeFirst(now.count)
      state.passes += count - now.count
      return now
    }
    for resume in held { resume() }
  }

  /// The total number of arrivals.
  public var arrivals: Int { state.read { $0.arrivals } }

  /// The number of arrivals that the gate holds now.
  public var held: Int { state.read { $0.held.count } }

  /// Returns when the total number of arrivals reaches `count`, or when the calling task is cancelled.
  public func arrived(_ count: Int = 1) async { await state.wait { $0.arrivals >= count } }

  /// Returns when the gate holds nothing, or when the calling task is cancelled.
  public func emptied() async { await state.wait { $0.held.isEmpty } }

  /// Arrives and waits until the gate lets this arrival through, or until the task is cancelled.
  public func pass() async {
    let passage = WatchedState(false)
    let ticket = arrive { passage.update { $0 = true } }
    await passage.wait { $0 }
    withdraw(ticket)
  }

  /// Registers an arrival. `resume` is called once on any thread, possibly before this method returns. It is not called
  /// after a timely withdrawal.
  package func arrive(_ resume: @escaping @Sendable () -> Void) -> Int {
    let (ticket, passes) = state.update { state -> (Int, Bool) in
      let ticket = state.arrivals
      state.arrivals += 1
      if state.isOpen { return (ticket, true) }
      if state.passes > 0 {
        state.passes -= 1
        return (ticket, true)
      }
      state.held.append((ticket, resume))
      return (ticket, false)
    }
    if passes { resume() }
    return ticket
  }

  package func withdraw(_ ticket: Int) { state.update { $0.held.removeAll { $0.id == ticket } } }
}
