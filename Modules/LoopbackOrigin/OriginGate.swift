#if Origin
  /// Holds answers until the test lets them through, and tells when they have come.
  ///
  /// ```swift
  /// let gate = OriginGate()
  /// origin.setRoute("/slow", Route(picture, delivery: .gated(by: gate)))
  /// async let answer = load(origin.url("/slow"))
  /// await gate.arrived()  // the request is at the origin, its answer waits
  /// gate.open()
  /// ```
  public final class OriginGate: Sendable {
    private struct State: Sendable {
      var isOpen: Bool
      var arrivals = 0
      var passes = 0
      var held: [(id: Int, resume: @Sendable () -> Void)] = []
    }

    private let state: WatchedState<State>

    /// A closed gate, unless told otherwise.
    public init(isOpen: Bool = false) { state = WatchedState(State(isOpen: isOpen)) }

    /// Lets everything through that is held, and all that comes later.
    public func open() {
      let held = state.update { state in
        state.isOpen = true
        defer { state.held = [] }
        return state.held.map(\.resume)
      }
      for resume in held { resume() }
    }

    /// Holds what comes from now on.
    public func close() {
      state.update {
        $0.isOpen = false
        $0.passes = 0
      }
    }

    /// Lets so many through, those held longest first; what is left over is for those that come next. An open gate is not
    /// changed.
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

    /// How many have come, ever.
    public var arrivals: Int { state.read { $0.arrivals } }

    /// How many are held now.
    public var held: Int { state.read { $0.held.count } }

    /// Returns when so many have come in all, or at once when the waiting task is cancelled.
    public func arrived(count: Int = 1) async { await state.wait { $0.arrivals >= count } }

    /// Returns when nothing is held (any more), or at once when the waiting task is cancelled.
    public func emptied() async { await state.wait { $0.held.isEmpty } }

    /// Arrives and waits for the gate: for the closure of a route. Returns at once when the task is cancelled.
    public func pass() async {
      let passage = WatchedState(false)
      let ticket = arrive { passage.update { $0 = true } }
      await passage.wait { $0 }
      withdraw(ticket)
    }

    /// Registers an arrival. `resume` is called once, on any thread, maybe before this returns; never when withdrawn in time.
    func arrive(_ resume: @escaping @Sendable () -> Void) -> Int {
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

    func withdraw(_ ticket: Int) { state.update { $0.held.removeAll { $0.id == ticket } } }
  }
#endif
