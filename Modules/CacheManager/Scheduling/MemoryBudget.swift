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

    /// Removes and returns the continuations of the tickets that are already waiting. The other tickets check whether they are
    /// granted before they wait.
    mutating func continuations(of tickets: [MemoryAccounting.Ticket]) -> [CheckedContinuation<Bool, Never>] {
      tickets.compactMap { waiting.removeValue(forKey: $0) }
    }
  }

  /// Whether the current code runs for a load that has a reservation. Loads that this code starts must not wait for memory,
  /// because the outer load may hold it.
  @TaskLocal static var isInsideLoad = false

  /// Runs code of a downloader for a load that has a reservation.
  static func insideLoad<Value: Sendable>(
    _ work: () async throws(CacheError) -> Value
  ) async throws(CacheError) -> Value {
    try await $isInsideLoad.withValue(true) { () async -> Result<Value, CacheError> in
      do throws(CacheError) {
        return .success(try await work())
      } catch {
        return .failure(error)
      }
    }.get()
  }

  /// The most bytes that a load reserves if it passes bytes on without collecting them.
  static let streamed = 256 << 10

  /// The most bytes that a body reserves when its first byte arrives.
  let first: Int
  /// The largest step in which the reservation of a body grows.
  let part: Int
  private let limit: Int
  private let state: Lock<State>
  private let hosts: HostSlots

  /// Creates a budget. An eighth of it is left for memory that is not counted: buffers of the engine, and memory that the
  /// allocator cannot return.
  ///
  /// - Parameter limit: The budget in bytes.
  init(_ limit: Int) {
    self.limit = max(1, limit)
    let accounting = MemoryAccounting(limit: limit - limit / 8)
    part = accounting.part
    first = min(Self.streamed, part)
    hosts = HostSlots(max(16, part / max(1, first)))
    state = Lock(State(accounting: accounting))
  }

  var use: (limit: Int, inUse: Int, peak: Int, waiting: Int) {
    state.withLock {
      (limit, $0.accounting.inUse, $0.accounting.peak, $0.accounting.waiting)
    }
  }

  /// Returns an empty reservation for a load that is about to send its request, or `nil` if the load must wait.
  ///
  /// - Parameters:
  ///   - host: The host that receives the request.
  ///   - isNested: Whether a load that has started waits for this one. A nested load starts at once.
  func startWithoutWaiting(_ host: HostSlots.Host, _ priority: LoadPriority, isNested: Bool) -> MemoryReservation? {
    guard !isNested else { return reservation(holding: 0, priority) }
    guard let slot = hosts.enterWithoutWaiting(host) else { return nil }
    let number = state.withLock { state -> Int? in
      guard state.accounting.grantWithoutWaiting(.start(part)) else { return nil }
      state.lastReservation += 1
      return state.lastReservation
    }
    guard let number else {
      slot.leave()
      return nil
    }
    return MemoryReservation(self, number, priority, slot)
  }

  /// Returns an empty reservation for a load that is about to send its request, once there is room for a body.
  ///
  /// - Throws: A cancellation of the calling task while it waits.
  func start(_ host: HostSlots.Host, _ priority: LoadPriority) async throws(CacheError) -> MemoryReservation {
    // The slot comes first, so that loads which wait for a silent server do not wait before other loads.
    let slot = try await hosts.enter(host, priority)
    do throws(CacheError) {
      try await claim(.start(part), priority)
    } catch {
      slot.leave()
      throw error
    }
    return reservation(holding: 0, priority, slot)
  }

  /// Reserves memory for the bytes of a stream that are collected, or returns `nil` if there is no room. It never waits, because
  /// the reader of a stream needs no collected bytes.
  func streamReservation(holding bytes: Int) -> MemoryReservation? {
    let number = state.withLock { state -> Int? in
      guard state.accounting.takeForStream(bytes) else { return nil }
      state.lastReservation += 1
      return state.lastReservation
    }
    return number.map { MemoryReservation(self, $0, nil, holding: .init(bodies: bytes, streams: bytes)) }
  }

  fileprivate func takeForStream(_ bytes: Int) -> Bool { state.withLock { $0.accounting.takeForStream(bytes) } }

  /// Returns a reservation for bytes that are already in memory.
  func reservation(holding bytes: Int, _ priority: LoadPriority? = nil, _ slot: HostSlot? = nil) -> MemoryReservation {
    let number = state.withLock { state in
      state.lastReservation += 1
      state.accounting.take(bytes)
      return state.lastReservation
    }
    return MemoryReservation(self, number, priority, holding: .init(bodies: bytes), slot)
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
      value: value, reservation: MemoryReservation(self, number, nil, holding: .init(work: bytes)))
  }

  // MARK: Waiting

  /// Returns whether a claim is granted at once.
  fileprivate func claimWithoutWaiting(_ claim: MemoryAccounting.Claim) -> Bool {
    state.withLock { $0.accounting.grantWithoutWaiting(claim) }
  }

  /// Waits until a claim is granted.
  func claim(_ claim: MemoryAccounting.Claim, _ priority: LoadPriority?) async throws(CacheError) {
    if claimWithoutWaiting(claim) { return }
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

  func giveBack(_ holding: MemoryAccounting.Holding, endOf reservation: Int? = nil) {
    let next = state.withLock { state in state.continuations(of: state.accounting.giveBack(holding, endOf: reservation)) }
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
    /// The slot of a load whose body is not reserved as a whole.
    var slot: HostSlot?
    var isReleased = false
  }

  private let budget: MemoryBudget
  private let number: Int
  private let priority: LoadPriority?
  private let state: Lock<State>

  init(
    _ budget: MemoryBudget, _ number: Int, _ priority: LoadPriority?, holding: MemoryAccounting.Holding = .init(),
    _ slot: HostSlot? = nil
  ) {
    (self.budget, self.number, self.priority) = (budget, number, priority)
    state = Lock(State(holding: holding, slot: slot))
  }

  deinit { release() }

  /// Reserves memory for a whole body that has arrived.
  func hold(_ bytes: Int64) async throws(CacheError) {
    try await budget.claim(.body(Int(clamping: bytes)), priority)
    add(.init(bodies: Int(clamping: bytes)))
    leaveSlot()
  }

  /// Reserves memory for a whole body that has arrived, or returns `false` if that must wait.
  func holdWithoutWaiting(_ bytes: Int64) -> Bool {
    guard budget.claimWithoutWaiting(.body(Int(clamping: bytes))) else { return false }
    add(.init(bodies: Int(clamping: bytes)))
    leaveSlot()
    return true
  }

  /// Reserves memory for the first bytes of a body, but only for the beginning of many bytes.
  ///
  /// The announced length is only a claim, so it reserves nothing. A server that announces much and sends little must not block
  /// loads from other servers.
  ///
  /// - Parameters:
  ///   - bytes: The number of bytes that have arrived.
  ///   - length: The announced length, if the body is collected. The load then keeps its slot until so much is reserved, because
  ///     the engine may buffer the rest.
  func begin(holding bytes: Int64, of length: Int64? = nil) async throws(CacheError) {
    let bytes = Int(clamping: min(bytes, Int64(budget.first)))
    try await budget.claim(.body(bytes), priority)
    add(.init(bodies: bytes))
    if length ?? 0 <= Int64(bytes) { leaveSlot() }
  }

  /// Reserves memory for a body that is about to have this number of bytes.
  ///
  /// - Parameter most: The largest size that the body can have, as far as known.
  func grow(to bytes: Int64, most: Int64) async throws(CacheError) {
    let held = state.withLock { $0.holding.bodies }
    guard bytes > held else { return }
    defer { if state.withLock({ $0.holding.bodies }) >= most { leaveSlot() } }
    // The sum of announced lengths must not overflow. The reservation grows as an array's capacity does, but by at most one part
    // at a time.
    let wanted = max(Int(clamping: min(bytes, 1 << 40)), Int(clamping: min(Int64(clamping: held + min(held, budget.part)), most)))
    guard wanted > held else { return }
    try await budget.claim(.growth(wanted - held, reservation: number), priority)
    add(.init(bodies: wanted - held))
  }

  /// Reserves memory for a collected stream that is about to have this number of bytes, without waiting.
  ///
  /// - Returns: Whether the reservation suffices.
  func growStream(to bytes: Int) -> Bool {
    let held = state.withLock { $0.holding.bodies }
    guard bytes > held else { return true }
    for wanted in [held + min(held, budget.part), bytes] where wanted >= bytes {
      guard budget.takeForStream(wanted - held) else { continue }
      add(.init(bodies: wanted - held, streams: wanted - held))
      return true
    }
    return false
  }

  /// Returns the memory that a complete body does not need.
  func end(at bytes: Int64) {
    let bytes = Int(clamping: bytes)
    let surplus = state.withLock { state in
      let bodies = max(0, state.holding.bodies - bytes)
      let surplus = MemoryAccounting.Holding(bodies: bodies, streams: min(bodies, state.holding.streams))
      state.holding.bodies -= surplus.bodies
      state.holding.streams -= surplus.streams
      return surplus
    }
    budget.giveBack(surplus)
    leaveSlot()
  }

  /// Adds granted memory to the reservation, or returns it if the reservation was released in the meantime.
  private func add(_ granted: MemoryAccounting.Holding) {
    let isReleased = state.withLock { state in
      if !state.isReleased {
        state.holding.bodies += granted.bodies
        state.holding.streams += granted.streams
      }
      return state.isReleased
    }
    if isReleased { budget.giveBack(granted, endOf: number) }
  }

  func release() {
    let holding = state.withLock { state in
      defer { (state.holding, state.isReleased) = (.init(), true) }
      return state.isReleased ? nil : state.holding
    }
    if let holding, holding != .init() { budget.giveBack(holding, endOf: number) }
    leaveSlot()
  }

  private func leaveSlot() { state.withLock { $0.slot.take() }?.leave() }
}
