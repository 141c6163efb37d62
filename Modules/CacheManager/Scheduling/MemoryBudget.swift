internal import CacheCore

/// The memory that the loads of a manager may take at the same time: ``MemoryAccounting`` behind a lock, with loads that wait for
/// memory without a thread.
final class MemoryBudget: Sendable {
  private struct State {
    var ledger: MemoryAccounting
    var lastTicket: MemoryAccounting.Ticket = 0
    var lastShare = 0
    /// The waiting loads. They are resumed with `true` if the claim is granted, and with `false` if it is cancelled.
    var waiting: [MemoryAccounting.Ticket: CheckedContinuation<Bool, Never>] = [:]

    /// The bytes that a body of at most this size is expected to take.
    func expected(upTo most: Int64) -> Int { Int(min(Int64(ledger.expectation), max(most, 0))) }

    /// Removes and returns the continuations of the tickets that wait already. The others check whether they are granted before
    /// they wait.
    mutating func continuations(of tickets: [MemoryAccounting.Ticket]) -> [CheckedContinuation<Bool, Never>] {
      tickets.compactMap { waiting.removeValue(forKey: $0) }
    }
  }

  /// Whether the current code works for a load that has a reservation. Loads that this code starts must not wait for memory,
  /// because that load may hold it.
  @TaskLocal static var isInsideLoad = false

  /// The number of bytes that a load reserves if it passes bytes on without collecting them.
  static let streamed = 256 << 10

  /// The part of a body that is reserved at once before its bytes are received.
  let part: Int
  private let limit: Int
  private let state: Lock<State>

  /// Creates a budget. An eighth of it is left for memory that is not counted: buffers of the engine, and memory that the
  /// allocator cannot return.
  ///
  /// - Parameter limit: The budget in bytes.
  init(_ limit: Int) {
    self.limit = max(1, limit)
    let ledger = MemoryAccounting(limit: limit - limit / 8)
    part = ledger.part
    state = Lock(State(ledger: ledger))
  }

  var use: (limit: Int, inUse: Int, peak: Int, waiting: Int) {
    state.withLock {
      (limit, $0.ledger.inUse, $0.ledger.peak, $0.ledger.waiting)
    }
  }

  /// Reserves memory for a load that is about to request a body, or returns `nil` if the load must wait for it.
  ///
  /// - Parameters:
  ///   - most: The largest body that the load accepts, in bytes.
  ///   - isNested: Whether a load that has its reservation already waits for this one. A nested load never waits, and holds
  ///     nothing.
  func placeWithoutWaiting(_ priority: LoadPriority, upTo most: Int64, isNested: Bool) -> MemoryReservation? {
    let (number, expected, isGranted) = state.withLock { state in
      let expected = state.expected(upTo: most)
      guard isNested || state.ledger.grantWithoutWaiting(.place(expected)) else { return (0, 0, false) }
      state.lastShare += 1
      return (state.lastShare, expected, true)
    }
    guard isGranted else { return nil }
    return MemoryReservation(self, number, priority, expecting: expected, holding: .init(places: isNested ? 0 : expected))
  }

  /// Reserves memory for a load that is about to request a body, and waits for it if necessary.
  ///
  /// - Throws: A cancellation of the calling task while it waits.
  func place(_ priority: LoadPriority, upTo most: Int64) async throws(CacheError) -> MemoryReservation {
    let (number, expected) = state.withLock { state in
      state.lastShare += 1
      return (state.lastShare, state.expected(upTo: most))
    }
    try await claim(.place(expected), priority)
    return MemoryReservation(self, number, priority, expecting: expected, holding: .init(places: expected))
  }

  /// Returns a reservation of bytes that are in memory already.
  func share(holding bytes: Int, _ priority: LoadPriority? = nil) -> MemoryReservation {
    let number = state.withLock { state in
      state.lastShare += 1
      state.ledger.take(bytes)
      return state.lastShare
    }
    return MemoryReservation(self, number, priority, expecting: bytes, holding: .init(bodies: bytes))
  }

  /// Makes a value, and reserves memory for the work. The value's own memory stays reserved until the value is released.
  ///
  /// - Throws: A cancellation of the calling task while it waits, or the error of the work.
  func work<Value>(
    _ bytes: Int, _ priority: LoadPriority, weight: (Value) -> Int, _ body: () async throws(CacheError) -> Value
  ) async throws(CacheError) -> ReservedValue<Value> {
    // Work that needs more than the limit runs alone.
    let bytes = min(bytes, state.withLock { $0.ledger.limit })
    try await claim(.work(bytes), priority)
    do throws(CacheError) {
      return counted(try await body(), weight, insteadOf: .init(work: bytes, workers: 1))
    } catch {
      giveBack(.init(work: bytes, workers: 1))
      throw error
    }
  }

  /// Reserves memory for a value that exists, without waiting.
  func counted<Value>(
    _ value: Value, _ weight: (Value) -> Int, insteadOf work: MemoryAccounting.Holding = .init()
  ) -> ReservedValue<Value> {
    // The sum of the costs that callers state must not overflow.
    let bytes = min(max(0, weight(value)), 1 << 40)
    let (number, next) = state.withLock { state in
      state.lastShare += 1
      return (state.lastShare, state.continuations(of: state.ledger.settle(work, at: bytes)))
    }
    for continuation in next { continuation.resume(returning: true) }
    return ReservedValue(value: value, share: MemoryReservation(self, number, nil, expecting: 0, holding: .init(work: bytes)))
  }

  // MARK: Waiting

  /// Waits until a claim is granted.
  func claim(_ claim: MemoryAccounting.Claim, _ priority: LoadPriority?) async throws(CacheError) {
    if state.withLock({ $0.ledger.grantWithoutWaiting(claim) }) { return }
    let (ticket, isGranted, others) = state.withLock { state in
      state.lastTicket += 1
      let ticket = state.lastTicket
      let served = state.ledger.claim(claim, ticket, level: priority?.level ?? .normal)
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
    // The raise follows the registration, because the observer is not told of earlier raises.
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
      guard state.ledger.isWaiting(ticket) else { return (true, []) }
      // An earlier cancellation found no continuation to resume. A later one waits for the lock.
      if Task.isCancelled { return (false, state.continuations(of: state.ledger.withdraw(ticket))) }
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
      return (waiter, state.continuations(of: state.ledger.withdraw(ticket)))
    }
    waiter?.resume(returning: false)
    for continuation in next { continuation.resume(returning: true) }
  }

  private func raise(_ ticket: MemoryAccounting.Ticket, to level: LoadPriority.Level) {
    let next = state.withLock { state in state.continuations(of: state.ledger.raise(ticket, to: level)) }
    for continuation in next { continuation.resume(returning: true) }
  }

  func giveBack(_ holding: MemoryAccounting.Holding, endOf share: Int? = nil, learning size: Int? = nil) {
    let next = state.withLock { state in
      if let size { state.ledger.learn(size) }
      return state.continuations(of: state.ledger.giveBack(holding, endOf: share))
    }
    for continuation in next { continuation.resume(returning: true) }
  }
}
