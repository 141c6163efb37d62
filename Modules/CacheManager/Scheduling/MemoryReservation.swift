internal import CacheCore

/// The part of the memory budget that one body, or one value, uses. It is returned once: by ``release()``, or when the
/// reservation is released together with the body.
///
/// One task at a time may let the reservation grow. Any task may release it at any time.
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

  /// Reserves memory for a body whose head has come, and returns the memory that the load has held so far.
  ///
  /// Reserves at most the expected size of a body, or a ``MemoryAccounting/part``. The announced length is only a claim: a server
  /// that announces much and sends little must not keep other loads waiting.
  ///
  /// - Parameter length: The announced length in bytes, or `nil` if it is unknown.
  func begin(announcing length: Int64?) async throws(CacheError) {
    let bytes = length.map { Int(clamping: min($0, Int64(clamping: max(expectation, budget.part)))) } ?? expectation
    try await begin(holding: bytes)
  }

  /// Reserves memory for a body that uses this number of bytes to its end.
  func begin(holding bytes: Int) async throws(CacheError) {
    try await budget.claim(.body(bytes), priority)
    keep(bytes, instead: true)
  }

  /// Reserves memory for a body that is about to have this number of bytes.
  ///
  /// - Parameter most: The largest size that the body can have, as far as is known.
  func grow(to bytes: Int64, most: Int64) async throws(CacheError) {
    let held = state.withLock { $0.holding.bodies }
    guard bytes > held else { return }
    // The sum of announced lengths must not overflow. The reservation grows as an array's capacity does, but by no more than a
    // part at once.
    let wanted = max(Int(clamping: min(bytes, 1 << 40)), Int(clamping: min(Int64(clamping: held + min(held, budget.part)), most)))
    guard wanted > held else { return }
    try await budget.claim(.growth(wanted - held, share: number), priority)
    keep(wanted - held, instead: false)
  }

  /// Returns the memory that a complete body does not use.
  ///
  /// - Parameter isTypical: Whether the size of the body is a sample for the expected size of bodies.
  func end(at bytes: Int64, isTypical: Bool = true) {
    let bytes = Int(clamping: bytes)
    let surplus = state.withLock { state in
      let surplus = max(0, state.holding.bodies - bytes)
      state.holding.bodies -= surplus
      return surplus
    }
    budget.giveBack(.init(bodies: surplus), learning: isTypical ? bytes : nil)
  }

  /// Adds a granted claim to the reservation, or returns it if the reservation was released meanwhile.
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
