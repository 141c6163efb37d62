internal import CacheCore

/// What one body, or one value on its way, takes of the memory budget. Given back once: when told, at the latest when nobody
/// holds it, and with it the body, any more.
///
/// Grows by one task at a time; may be released at any time, by anybody.
final class MemoryReservation: Sendable {
  private struct State {
    var holding: MemoryAccounting.Holding
    var isReleased = false
  }

  private let budget: MemoryBudget
  private let number: Int
  private let priority: LoadPriority?
  private let expectation: Int
  private let state: Lock<State>

  init(
    _ budget: MemoryBudget, _ number: Int, _ priority: LoadPriority?, expecting expectation: Int,
    holding: MemoryAccounting.Holding = .init()
  ) {
    (self.budget, self.number, self.priority, self.expectation) = (budget, number, priority, expectation)
    state = Lock(State(holding: holding))
  }

  deinit { release() }

  /// The body begins. Waits until there is room for as much of it as is expected of any body, or for a ``MemoryAccounting/part``:
  /// the rest is an announcement, and one who announces much and sends little holds nobody up. What it waited with so far goes
  /// back then.
  ///
  /// - Parameter length: bytes, as announced; nil: not told.
  func begin(announcing length: Int64?) async throws(CacheError) {
    let bytes = length.map { Int(clamping: min($0, Int64(clamping: max(expectation, budget.part)))) } ?? expectation
    try await begin(holding: bytes)
  }

  /// The body begins, and takes so much to its end.
  func begin(holding bytes: Int) async throws(CacheError) {
    try await budget.claim(.body(bytes), priority)
    keep(bytes, instead: true)
  }

  /// The body has so many bytes by now, or is about to.
  ///
  /// - Parameter most: how many it will have at most, by what is known.
  func grow(to bytes: Int64, most: Int64) async throws(CacheError) {
    let held = state.withLock { $0.holding.bodies }
    guard bytes > held else { return }
    // No sum of what is announced overflows. As a buffer grows that is appended to, but not by more than a part.
    let wanted = max(Int(clamping: min(bytes, 1 << 40)), Int(clamping: min(Int64(clamping: held + min(held, budget.part)), most)))
    guard wanted > held else { return }
    try await budget.claim(.growth(wanted - held, share: number), priority)
    keep(wanted - held, instead: false)
  }

  /// The body is whole.
  ///
  /// - Parameter isTypical: its size says something of those that are still to come.
  func end(at bytes: Int64, isTypical: Bool = true) {
    let bytes = Int(clamping: bytes)
    let surplus = state.withLock { state in
      let surplus = max(0, state.holding.bodies - bytes)
      state.holding.bodies -= surplus
      return surplus
    }
    budget.giveBack(.init(bodies: surplus), learning: isTypical ? bytes : nil)
  }

  /// What was granted is this share's, unless it has been released meanwhile.
  private func keep(_ bytes: Int, instead: Bool) {
    let (back, isReleased) = state.withLock { state in
      (settle(bytes, instead: instead, &state), state.isReleased)
    }
    if back != MemoryAccounting.Holding() { budget.giveBack(back, endOf: isReleased ? number : nil) }
  }

  private func settle(_ bytes: Int, instead: Bool, _ state: inout State) -> MemoryAccounting.Holding {
    guard !state.isReleased else { return MemoryAccounting.Holding(bodies: bytes) }
    state.holding.bodies += bytes
    guard instead else { return MemoryAccounting.Holding() }
    defer { state.holding.places = 0 }
    return MemoryAccounting.Holding(places: state.holding.places)
  }

  func release() {
    let holding = state.withLock { state in
      defer { (state.holding, state.isReleased) = (.init(), true) }
      return state.isReleased ? nil : state.holding
    }
    if let holding, holding != .init() { budget.giveBack(holding, endOf: number) }
  }
}
