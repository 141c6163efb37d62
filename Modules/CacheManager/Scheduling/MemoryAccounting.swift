internal import CacheCore

/// The decisions about a manager's memory budget: which claims are granted, and which claim is next. It never waits. Each
/// decision costs O(log n).
///
/// No two claims wait for each other:
/// - A load that starts holds no memory. Its body takes memory as its bytes arrive, so a server that sends nothing, or little,
///   blocks no load from another server.
/// - A stream takes memory only if that is possible at once, and streams never hold more than half of the memory for bodies. A
///   client that reads slowly therefore blocks no load.
/// - Of the bodies that grow beyond the remaining budget, one at a time grows without limit. The others wait for its end, or for
///   room.
/// - Of the claims for work, one at a time is always granted. A value between two steps needs no work, so it does not take this
///   exception.
struct MemoryAccounting {
  typealias Ticket = PriorityQueue.Ticket

  enum Claim: Equatable {
    /// The start of a load, which waits until this number of bytes is available, and then holds none of them.
    case start(Int)
    /// The first bytes of a body.
    case body(Int)
    /// The growth of the body of a reservation.
    case growth(Int, reservation: Int)
    /// Work that needs this number of bytes in addition to the bodies.
    case work(Int)
  }

  /// The memory that a reservation holds.
  struct Holding: Equatable {
    var bodies = 0
    /// The part of ``bodies`` that streams hold.
    var streams = 0
    var work = 0
    var workers = 0
  }

  /// The queues in the order in which they are served. Claims that help loads to end come before claims that begin something.
  private enum Stage: Int, CaseIterable { case work, growth, body, start }

  /// The budget in bytes.
  let limit: Int
  /// The part of the budget for bodies. The rest is for work.
  let limitOfBodies: Int
  /// The bytes that are available when a load starts, and the largest step in which the reservation of a body grows.
  let part: Int
  private(set) var held = Holding()
  private(set) var peak = 0
  private var waiters: [Ticket: Claim] = [:]
  private var queues = [PriorityQueue](repeating: PriorityQueue(), count: Stage.allCases.count)
  /// The one reservation that may grow beyond the limit.
  private var overdrawn: Int?

  init(limit: Int) {
    self.limit = max(1, limit)
    limitOfBodies = self.limit - self.limit / 4
    part = limitOfBodies / 8
  }

  var waiting: Int { waiters.count }

  func isWaiting(_ ticket: Ticket) -> Bool { waiters[ticket] != nil }

  /// The bytes that are in memory, or that are certain to arrive.
  var inUse: Int { held.bodies + held.work }

  /// Adds a claim, which waits unless it is granted at once.
  ///
  /// - Returns: The tickets that are granted now. The next ticket depends on later claims, and on how often a queue was served.
  mutating func claim(_ claim: Claim, _ ticket: Ticket, level: LoadPriority.Level) -> [Ticket] {
    if case .growth(_, let reservation) = claim, overdrawn == reservation {
      // The other growing bodies wait for the end of this one, so it must not wait behind them.
      grant(claim)
      return [ticket]
    }
    waiters[ticket] = claim
    queues[Self.stage(of: claim).rawValue].insert(ticket, level)
    return served()
  }

  /// Grants a claim if no other claim waits and the budget suffices. Most claims are granted in this way.
  ///
  /// - Returns: Whether the claim was granted. Otherwise nothing has changed.
  mutating func grantWithoutWaiting(_ claim: Claim) -> Bool {
    guard waiters.isEmpty, fits(claim) else { return false }
    grant(claim)
    return true
  }

  /// Raises the priority of a waiting claim.
  ///
  /// - Returns: The tickets that are granted now.
  mutating func raise(_ ticket: Ticket, to level: LoadPriority.Level) -> [Ticket] {
    guard let claim = waiters[ticket], queues[Self.stage(of: claim).rawValue].raise(ticket, to: level) else { return [] }
    return served()
  }

  /// Removes a waiting claim.
  ///
  /// - Returns: The tickets that are granted now.
  mutating func withdraw(_ ticket: Ticket) -> [Ticket] {
    guard let claim = waiters.removeValue(forKey: ticket) else { return [] }
    queues[Self.stage(of: claim).rawValue].remove(ticket)
    return served()
  }

  /// Returns memory to the budget.
  ///
  /// - Parameter reservation: The reservation that ends, or `nil` if a part of it is returned.
  /// - Returns: The tickets that are granted now.
  mutating func giveBack(_ holding: Holding, endOf reservation: Int? = nil) -> [Ticket] {
    held.bodies -= holding.bodies
    held.streams -= holding.streams
    held.work -= holding.work
    held.workers -= holding.workers
    // A body that is within the limit again loses its privilege: it may be slow, and another one fast.
    if reservation != nil && overdrawn == reservation || hasSpace(for: 0) { overdrawn = nil }
    return served()
  }

  /// Replaces the memory of work by the memory of its value, which is counted until the value is released.
  ///
  /// - Returns: The tickets that are granted now.
  mutating func settle(_ work: Holding, at bytes: Int) -> [Ticket] {
    held.work += bytes
    defer { peak = max(peak, inUse) }
    return giveBack(work)
  }

  /// Adds bytes that are already in memory.
  mutating func take(_ bytes: Int) {
    held.bodies += bytes
    peak = max(peak, inUse)
  }

  /// Adds bytes of a stream, unless a load waits or the streams hold too much.
  ///
  /// - Returns: Whether the bytes were added. Otherwise nothing has changed.
  mutating func takeForStream(_ bytes: Int) -> Bool {
    guard waiters.isEmpty, bytes <= limitOfBodies / 2 - held.streams, hasSpace(for: bytes) else { return false }
    held.streams += bytes
    take(bytes)
    return true
  }

  private static func stage(of claim: Claim) -> Stage {
    switch claim {
    case .start: .start
    case .body: .body
    case .growth: .growth
    case .work: .work
    }
  }

  private mutating func served() -> [Ticket] {
    guard !waiters.isEmpty else { return [] }
    var tickets: [Ticket] = []
    while let ticket = next() { tickets.append(ticket) }
    return tickets
  }

  /// Grants the next claims for which the budget suffices. If it does not suffice for the next one, later claims wait too. A
  /// large claim would otherwise never be granted.
  private mutating func next() -> Ticket? {
    for stage in Stage.allCases {
      guard let ticket = queues[stage.rawValue].next(), let claim = waiters[ticket] else { continue }
      guard fits(claim) else { return nil }
      grant(claim)
      waiters[ticket] = nil
      queues[stage.rawValue].remove(ticket)
      queues[stage.rawValue].countServed()
      return ticket
    }
    return nil
  }

  private func fits(_ claim: Claim) -> Bool {
    switch claim {
    case .start(let bytes), .body(let bytes):
      // A claim that is larger than the limit is granted if no other load holds a body. Streams may hold theirs for long.
      return held.bodies == held.streams || hasSpace(for: bytes)
    case .growth(let bytes, _):
      return hasSpace(for: bytes) || overdrawn == nil
    case .work(let bytes):
      return held.workers == 0 || bytes <= limit - inUse
    }
  }

  private func hasSpace(for bytes: Int) -> Bool { bytes <= limitOfBodies - held.bodies && bytes <= limit - inUse }

  private mutating func grant(_ claim: Claim) {
    switch claim {
    case .start: break
    case .body(let bytes): held.bodies += bytes
    case .growth(let bytes, let reservation):
      if !hasSpace(for: bytes) { overdrawn = reservation }
      held.bodies += bytes
    case .work(let bytes):
      held.work += bytes
      held.workers += 1
    }
    peak = max(peak, inUse)
  }
}
