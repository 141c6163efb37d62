internal import CacheCore

/// The memory that the loads of a manager may use at the same time: ``MemoryAccounting`` behind a lock. Loads that wait for
/// memory do not block a thread.
final class MemoryBudget: Sendable {
  private struct State {
    var accounting: MemoryAccounting
    var lastTicket: MemoryAccounting.Ticket = 0
    var lastReservation = 0
    /// The waiting loads. They are resumed with `true` if the claim is granted, and with `false` if it is cancelled.
    var waiting: [MemoryAccounting.Ticket: CheckedContinuation<Bool, Never>] = [:]

    /// The bytes that a body of at most this size is expected to need.
    func expected(upTo most: Int64) -> Int { Int(min(Int64(accounting.expectation), max(most, 0))) }

    /// Removes and returns the continuations of the tickets that are already waiting. The other tickets check whether they are
    /// granted before they wait.
    mutating func continuations(of tickets: [MemoryAccounting.Ticket]) -> [CheckedContinuation<Bool, Never>] {
      tickets.compactMap { waiting.removeValue(forKey: $0) }
    }
  }

  /// Whether the current code runs for a load that has a reservation. Loads that this code starts must not wait for memory,
  /// because the outer load may hold it.
  @TaskLocal static var isInsideLoad = false

  /// The number of bytes that a load reserves if it passes bytes on without collecting them.
  static let streamed = 256 << 10

  /// The part of a body that is reserved before its bytes arrive.
  let part: Int
  private let limit: Int
  private let state: Lock<State>

  /// Creates a budget. An eighth of it is left for memory that is not counted: buffers of the engine, and memory that the
  /// allocator cannot return.
  ///
  /// - Parameter limit: The budget in bytes.
  init(_ limit: Int) {
    self.limit = max(1, limit)
    let accounting = MemoryAccounting(limit: limit - limit / 8)
    part = accounting.part
    state = Lock(State(accounting: accounting))
  }

  var use: (limit: Int, inUse: Int, peak: Int, waiting: Int) {
    state.withLock {
      (limit, $0.accounting.inUse, $0.accounting.peak, $0.accounting.waiting)
    }
  }

  /// Reserves memory for a load that is about to request a body, or returns `nil` if the load must wait for it.
  ///
  /// - Parameters:
  ///   - most: The largest body that the load accepts, in bytes.
  ///   - isNested: Whether a load that already has its reservation waits for this one. A nested load never waits, and reserves
  ///     nothing.
  func reserveWithoutWaiting(_ priority: LoadPriority, upTo most: Int64, isNested: Bool) -> MemoryReservation? {
    let (number, expected, isGranted) = state.withLock { state in
      let expected = state.expected(upTo: most)
      guard isNested || state.accounting.grantWithoutWaiting(.initial(expected)) else { return (0, 0, false) }
      state.lastReservation += 1
      return (state.lastReservation, expected, true)
    }
    guard isGranted else { return nil }
    return MemoryReservation(self, number, priority, expecting: expected, holding: .init(initial: isNested ? 0 : expected))
  }

  /// Reserves memory for a load that is about to request a body, and waits for the memory if necessary.
  ///
  /// - Throws: A cancellation of the calling task while it waits.
  func reserve(_ priority: LoadPriority, upTo most: Int64) async throws(CacheError) -> MemoryReservation {
    let (number, expected) = state.withLock { state in
      state.lastReservation += 1
      return (state.lastReservation, state.expected(upTo: most))
    }
    try await claim(.initial(expected), priority)
    return MemoryReservation(self, number, priority, expecting: expected, holding: .init(initial: expected))
  }

  /// Returns a reservation for bytes that are already in memory.
  func reservation(holding bytes: Int, _ priority: LoadPriority? = nil) -> MemoryReservation {
    let number = state.withLock { state in
      state.lastReservation += 1
      state.accounting.take(bytes)
      return state.lastReservation
    }
    return MemoryReservation(self, number, priority, expecting: bytes, holding: .init(bodies: bytes))
  }

  /// Makes a value, and reserves memory for the work. The memory of the value stays reserved until the value is released.
  ///
  /// - Throws: A cancellation of the calling task while it waits, or the error of the work.
  func work<Value>(
    _ bytes: Int, _ priority: LoadPriority, weight: (Value) -> Int, _ body: () async throws(CacheError) -> Value
  ) async throws(CacheError) -> ReservedValue<Value> {
    // Work that needs more than the limit runs alone.
    let bytes = min(bytes, state.withLock { $0.accounting.limit })
    try await claim(.work(bytes), priority)
    do throws(CacheError) {
      return counted(try await body(), weight, insteadOf: .init(work: bytes, workers: 1))
    } catch {
      giveBack(.init(work: bytes, workers: 1))
      throw error
    }
  }

  /// Reserves memory for an existing value, without waiting.
  func counted<Value>(
    _ value: Value, _ weight: (Value) -> Int, insteadOf work: MemoryAccounting.Holding = .init()
  ) -> ReservedValue<Value> {
    // The sum of the costs that callers state must not overflow.
    let bytes = min(max(0, weight(value)), 1 << 40)
    let (number, next) = state.withLock { state in
      state.lastReservation += 1
      return (state.lastReservation, state.continuations(of: state.accounting.settle(work, at: bytes)))
    }
    for continuation in next { continuation.resume(returning: true) }
    return ReservedValue(
      value: value, reservation: MemoryReservation(self, number, nil, expecting: 0, holding: .init(work: bytes)))
  }

  // MARK: Waiting

  /// Waits until a claim is granted.
  func claim(_ claim: MemoryAccounting.Claim, _ priority: LoadPriority?) async throws(CacheError) {
    if state.withLock({ $0.accounting.grantWithoutWaiting(claim) }) { return }
    let (ticket, isGranted, others) = state.withLock { state in
      state.lastTicket += 1
      let ticket = state.lastTicket
      let served = state.accounting.claim(claim, ticket, level: priority?.level ?? .normal)
      return (ticket, served.contains(ticket), state.continuations(of: served))
    }
    for continuation in others { continuation.resume(returning: true) }
    if !isGranted { try await wait(ticket, priority ?? LoadPriority()) }
  }

  /// Waits for a claim. Out of line, because most claims are granted at once.
  @inline(never)
  private func wait(_ ticket: MemoryAccounting.Ticket, _ priority: LoadPriority) async throws(CacheError) {
    let observation = priority.onRaise { [weak self] level in self?.raise(ticket, to: level) }
    defer { observation.cancel() }
    // The raise follows the registration, because the observer does not receive earlier raises.
    raise(ticket, to: priority.level)
    let isGranted = await withTaskCancellationHandler {
      await withCheckedContinuation { begin(ticket, $0) }
    } onCancel: {
      cancel(ticket)
    }
    if !isGranted { throw .cancelled }
  }

  private func begin(_ ticket: MemoryAccounting.Ticket, _ continuation: CheckedContinuation<Bool, Never>) {
    let (outcome, next): (Bool?, [CheckedContinuation<Bool, Never>]) = state.withLock { state in
      guard state.accounting.isWaiting(ticket) else { return (true, []) }
      // An earlier cancellation found no continuation to resume. A later one waits for the lock.
      if Task.isCancelled { return (false, state.continuations(of: state.accounting.withdraw(ticket))) }
      state.waiting[ticket] = continuation
      return (nil, [])
    }
    if let outcome { continuation.resume(returning: outcome) }
    for continuation in next { continuation.resume(returning: true) }
  }

  private func cancel(_ ticket: MemoryAccounting.Ticket) {
    let (waiter, next) = state.withLock { state in
      guard let waiter = state.waiting.removeValue(forKey: ticket) else {
        return (CheckedContinuation<Bool, Never>?.none, [CheckedContinuation<Bool, Never>]())
      }
      return (waiter, state.continuations(of: state.accounting.withdraw(ticket)))
    }
    waiter?.resume(returning: false)
    for continuation in next { continuation.resume(returning: true) }
  }

  private func raise(_ ticket: MemoryAccounting.Ticket, to level: LoadPriority.Level) {
    let next = state.withLock { state in state.continuations(of: state.accounting.raise(ticket, to: level)) }
    for continuation in next { continuation.resume(returning: true) }
  }

  func giveBack(_ holding: MemoryAccounting.Holding, endOf reservation: Int? = nil, learning size: Int? = nil) {
    let next = state.withLock { state in
      if let size { state.accounting.learn(size) }
      return state.continuations(of: state.accounting.giveBack(holding, endOf: reservation))
    }
    for continuation in next { continuation.resume(returning: true) }
  }
}

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

  /// Reserves memory for a body whose head has arrived, and returns the memory that the load has held so far.
  ///
  /// Reserves at most the expected size of a body, or a ``MemoryAccounting/part``. The announced length is only a claim: a server
  /// that announces much and sends little must not block other loads.
  ///
  /// - Parameter length: The announced length in bytes, or `nil` if it is unknown.
  func begin(announcing length: Int64?) async throws(CacheError) {
    let bytes = length.map { Int(clamping: min($0, Int64(clamping: max(expectation, budget.part)))) } ?? expectation
    try await begin(holding: bytes)
  }

  /// Reserves memory for a body that uses this number of bytes until its end.
  func begin(holding bytes: Int) async throws(CacheError) {
    try await budget.claim(.body(bytes), priority)
    addGranted(bytes, instead: true)
  }

  /// Reserves memory for a body that is about to have this number of bytes.
  ///
  /// - Parameter most: The largest size that the body can have, as far as known.
  func grow(to bytes: Int64, most: Int64) async throws(CacheError) {
    let held = state.withLock { $0.holding.bodies }
    guard bytes > held else { return }
    // The sum of announced lengths must not overflow. The reservation grows as an array's capacity does, but by at most one part
    // at a time.
    let wanted = max(Int(clamping: min(bytes, 1 << 40)), Int(clamping: min(Int64(clamping: held + min(held, budget.part)), most)))
    guard wanted > held else { return }
    try await budget.claim(.growth(wanted - held, reservation: number), priority)
    addGranted(wanted - held, instead: false)
  }

  /// Returns the memory that a complete body does not need.
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

  /// Adds a granted claim to the reservation, or returns it if the reservation was released in the meantime.
  private func addGranted(_ bytes: Int, instead: Bool) {
    let (back, isReleased) = state.withLock { state in
      (settle(bytes, instead: instead, &state), state.isReleased)
    }
    if back != MemoryAccounting.Holding() { budget.giveBack(back, endOf: isReleased ? number : nil) }
  }

  private func settle(_ bytes: Int, instead: Bool, _ state: inout State) -> MemoryAccounting.Holding {
    guard !state.isReleased else { return MemoryAccounting.Holding(bodies: bytes) }
    state.holding.bodies += bytes
    guard instead else { return MemoryAccounting.Holding() }
    defer { state.holding.initial = 0 }
    return MemoryAccounting.Holding(initial: state.holding.initial)
  }

  func release() {
    let holding = state.withLock { state in
      defer { (state.holding, state.isReleased) = (.init(), true) }
      return state.isReleased ? nil : state.holding
    }
    if let holding, holding != .init() { budget.giveBack(holding, endOf: number) }
  }
}
