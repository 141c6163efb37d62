internal import CacheCore

/// The state of a ``MemoryBudget``: what each reservation holds, and the claims that wait. It never waits. Each operation costs
/// O(log n).
///
/// No two loads wait for each other:
/// - A load holds no memory until bytes of its body arrive. The first bytes are in memory already, so they are counted without
///   waiting. A server that sends nothing, or little, blocks no load from another server.
/// - A stream takes memory only if that is possible at once, and streams never hold more than half of the memory for bodies. A
///   client that reads slowly therefore blocks no load.
/// - Of the bodies that grow beyond the remaining budget, one at a time grows without limit. The others wait for its end, or for
///   room.
/// - Of the claims for work, one at a time is always granted. A value between two steps needs no work, so it does not take this
///   exception.
struct MemoryAccounting {
  typealias Waiter = Resumption<Bool>

  /// The most bytes that one reservation counts, because sums of costs that callers state must not overflow.
  static let mostBytes = mostBytes(of: Int.self)

  /// Returns ``mostBytes`` for a type of integers. Older watches have `Int`s of 32 bits.
  static func mostBytes<Integer: FixedWidthInteger>(of _: Integer.Type) -> Integer {
    Integer(clamping: min(1 << 40, Int64(Integer.max) / 16))
  }

  /// The number of a reservation: its position, and a ticket that no earlier reservation at this position had.
  struct Number: Sendable {
    let index: Int
    let ticket: PriorityQueue.Ticket
  }

  enum Use: Int, CaseIterable { case body, stream, work, value }

  /// A slot, of which there is a limited number. A reservation holds at most one.
  enum Slot: Hashable, Sendable {
    /// A request to one host, until the body is reserved. Until then, the engine may buffer bytes that nothing counts;
    /// `URLSession` buffers whole bodies.
    case request(scheme: String?, authority: String?)
    /// A step that makes a value.
    case step
  }

  /// A queue of claims: for work, for a body that grows, for a load that starts, or for a slot.
  enum Lane: Hashable, Sendable {
    case work, growth, start, slot(Slot)

    /// The lanes of claims for memory. Claims that help loads to end are served before claims that begin something.
    static let forMemory: [Self] = [.work, .growth, .start]
  }

  struct Claim: Sendable {
    let lane: Lane
    /// The bytes that the reservation then holds.
    var bytes = 0
    /// The largest size that a growing body can have. The load leaves its slot when so much is reserved.
    var most = Int64.max

    /// The start of a load, which waits until ``part`` is available, and then holds none of it.
    static let start = Self(lane: .start)
  }

  private struct Holding {
    /// The ticket of the reservation, or 0 after its end.
    var ticket: PriorityQueue.Ticket
    let use: Use
    var bytes = 0
    var slot: Slot?
  }

  private let limit: Int
  /// The part of the limit for bodies. The rest is for work.
  private let limitOfBodies: Int
  /// The bytes that are available when a load starts, and the largest step in which a body grows.
  private let part: Int
  /// The most bytes that are counted without waiting when a body begins.
  let first: Int
  /// The number of request slots of each host.
  private let requests: Int
  private let steps: Int

  private(set) var peak = 0
  private var held = [Int](repeating: 0, count: Use.allCases.count)
  private var holdings: [Holding] = []
  /// The positions of reservations that have ended.
  private var free: [Int] = []
  private var last: PriorityQueue.Ticket = 0
  private var taken: [Slot: Int] = [:]
  /// The one reservation that has grown beyond the limit. While there is one, there is no space.
  private var overdrawn: PriorityQueue.Ticket?
  private var waiters: [PriorityQueue.Ticket: (number: Number, claim: Claim, waiter: Waiter)] = [:]
  /// The queues that are not empty.
  private var queues: [Lane: PriorityQueue] = [:]
  private var answers: [(waiter: Waiter, isGranted: Bool)] = []

  init(limit: Int, steps: Int) {
    (self.limit, self.steps) = (max(1, limit), max(1, steps))
    limitOfBodies = self.limit - self.limit / 4
    part = limitOfBodies / 8
    first = min(MemoryBudget.streamed, part)
    requests = max(16, part / max(1, first))
  }

  var inUse: Int { held.reduce(0, +) }
  /// Whether loads wait to start, or for a slot of this kind. The next load would wait behind them.
  func hasWaiters(for slot: Slot) -> Bool { queues[.start] != nil || queues[.slot(slot)] != nil }
  /// The number of claims that wait for memory.
  var waiting: Int { Lane.forMemory.reduce(0) { $0 + (queues[$1]?.count ?? 0) } }
  /// The number of hosts and other things of which slots are taken, and of claims that wait for a slot.
  var slots: (known: Int, waiting: Int) { (taken.count, waiters.count - waiting) }

  /// The bytes of one use.
  private subscript(use: Use) -> Int {
    get { held[use.rawValue] }
    set { held[use.rawValue] = newValue }
  }

  private func hasSpace(for bytes: Int) -> Bool {
    bytes <= limitOfBodies - self[.body] - self[.stream] && bytes <= limit - inUse
  }

  // MARK: Reservations

  /// Opens a reservation for bytes that are already in memory, or for none.
  mutating func open(_ use: Use, holding bytes: Int = 0) -> Number {
    last += 1
    let number = Number(index: free.popLast() ?? holdings.count, ticket: last)
    let holding = Holding(ticket: last, use: use)
    if number.index < holdings.count { holdings[number.index] = holding } else { holdings.append(holding) }
    resize(number, to: bytes)
    return number
  }

  /// Returns the bytes that a reservation holds, or `nil` after its end.
  private func bytes(of number: Number) -> Int? {
    holdings[number.index].ticket == number.ticket ? holdings[number.index].bytes : nil
  }

  /// Sets the number of bytes that a reservation holds, without waiting. A closed reservation stays closed.
  mutating func resize(_ number: Number, to bytes: Int, leavesSlot: Bool = false) {
    guard let held = self.bytes(of: number) else { return }
    holdings[number.index].bytes = bytes
    self[holdings[number.index].use] += bytes - held
    peak = max(peak, inUse)
    // A body that is within the limit again loses its privilege: it may be slow, and another one fast.
    if overdrawn != nil, hasSpace(for: 0) { overdrawn = nil }
    if leavesSlot { leaveSlot(of: number) }
  }

  mutating func close(_ number: Number) {
    guard bytes(of: number) != nil else { return }
    if overdrawn == number.ticket { overdrawn = nil }
    resize(number, to: 0, leavesSlot: true)
    // Claims of other loads must not wait behind one that needs nothing any more.
    answer(number.ticket, isGranted: true)
    holdings[number.index].ticket = 0
    free.append(number.index)
  }

  /// Grows the reservation of a body as the capacity of an array grows, but by at most one part at a time.
  ///
  /// - Returns: The claim for which the reservation must wait, or `nil` if it suffices now.
  mutating func grow(_ number: Number, to bytes: Int64, most: Int64, mayWait: Bool) -> Claim? {
    guard let held = self.bytes(of: number), bytes > held else { return nil }
    // The sum of announced lengths must not overflow.
    let wanted = max(Int(min(bytes, Int64(Self.mostBytes))), Int(clamping: min(Int64(clamping: held + min(held, part)), most)))
    let claim = Claim(lane: .growth, bytes: wanted, most: most)
    if mayWait { return grantAtOnce(claim, to: number) ? nil : claim }
    resize(number, to: wanted, leavesSlot: wanted >= most)
    return nil
  }

  /// Grows the reservation of a stream, unless a load waits or the streams hold too much.
  ///
  /// - Returns: Whether the reservation suffices.
  mutating func growStream(_ number: Number, to bytes: Int) -> Bool {
    guard let held = self.bytes(of: number), bytes > held else { return true }
    guard waiting == 0, bytes - held <= limitOfBodies / 2 - self[.stream], hasSpace(for: bytes - held) else { return false }
    resize(number, to: bytes)
    return true
  }

  private mutating func leaveSlot(of number: Number) {
    guard let slot = holdings[number.index].slot.take(), let index = taken.index(forKey: slot) else { return }
    taken.values[index] -= 1
    if taken.values[index] == 0 { taken.remove(at: index) }
    serve(.slot(slot))
  }

  // MARK: Claims

  /// Grants a claim if it need not wait. Most claims are granted in this way.
  ///
  /// - Returns: Whether the claim was granted. Otherwise nothing has changed.
  mutating func grantAtOnce(_ claim: Claim, to number: Number) -> Bool {
    if case .slot = claim.lane { return grant(claim, to: number) }
    // The other growing bodies wait for the end of the one that exceeds the limit, so it must not wait behind them.
    if overdrawn != number.ticket, !queues.isEmpty {
      for lane in Lane.forMemory {
        if queues[lane] != nil { return false }
        if lane == claim.lane { break }
      }
    }
    return grant(claim, to: number)
  }

  /// Adds a claim that waits unless it can be granted now. A reservation has at most one.
  mutating func wait(
    _ number: Number, for claim: Claim, _ waiter: Waiter, level: LoadPriority.Level, isContinuing: Bool
  ) {
    waiters[number.ticket] = (number, claim, waiter)
    if grantAtOnce(claim, to: number) { return answer(number.ticket, isGranted: true) }
    queues[claim.lane, default: PriorityQueue()].insert(number.ticket, level, isContinuing: isContinuing)
  }

  mutating func raise(_ ticket: PriorityQueue.Ticket, to level: LoadPriority.Level) {
    if let lane = waiters[ticket]?.claim.lane { queues[lane]?.raise(ticket, to: level) }
  }

  /// Ends the wait for a claim, if it still waits.
  mutating func answer(_ ticket: PriorityQueue.Ticket, isGranted: Bool) {
    guard !waiters.isEmpty, let (_, claim, waiter) = waiters.removeValue(forKey: ticket) else { return }
    queues[claim.lane]?.remove(ticket)
    if queues[claim.lane]?.isEmpty == true { queues[claim.lane] = nil }
    answers.append((waiter, isGranted))
  }

  /// Grants the next claims for which there is memory after a change. If it does not suffice for the next claim, later ones wait
  /// too. A large claim would otherwise never be granted.
  ///
  /// - Returns: The waiters to resume outside the lock.
  mutating func serve() -> [(waiter: Waiter, isGranted: Bool)] {
    guard !queues.isEmpty || !answers.isEmpty else { return [] }
    for lane in Lane.forMemory {
      serve(lane)
      if queues[lane] != nil { break }
    }
    defer { answers = [] }
    return answers
  }

  private mutating func serve(_ lane: Lane) {
    guard !queues.isEmpty else { return }
    while let ticket = queues[lane]?.next(), let next = waiters[ticket], grant(next.claim, to: next.number) {
      if Lane.forMemory.contains(lane) { queues[lane]?.countServed() }
      answer(ticket, isGranted: true)
    }
  }

  /// - Returns: Whether the claim was granted. Otherwise nothing has changed.
  private mutating func grant(_ claim: Claim, to number: Number) -> Bool {
    // A reservation that was closed while it waited takes nothing.
    guard let held = bytes(of: number) else { return true }
    switch claim.lane {
    case .slot(let slot):
      if let index = taken.index(forKey: slot) {
        guard taken.values[index] < (slot == .step ? steps : requests) else { return false }
        taken.values[index] += 1
      } else {
        taken[slot] = 1
      }
      holdings[number.index].slot = slot
    case .start:
      // Streams may hold their memory for long, so they do not prevent the only load from starting.
      return self[.body] == 0 || hasSpace(for: part)
    case .growth:
      guard overdrawn == nil || overdrawn == number.ticket else { return false }
      if !hasSpace(for: claim.bytes - held) { overdrawn = number.ticket }
      resize(number, to: claim.bytes, leavesSlot: claim.bytes >= claim.most)
    case .work:
      // Work that needs more than the limit runs alone.
      let bytes = min(claim.bytes, limit)
      guard self[.work] == 0 || bytes <= limit - inUse else { return false }
      resize(number, to: bytes)
    }
    return true
  }
}
