internal import CacheCore

/// How a manager's memory budget is spent, and who is next: the decisions, without waiting. O(log n) for each.
///
/// Nobody waits for somebody who may be waiting for him:
/// - Who waits for a place holds nothing.
/// - Who waits for his body holds a place, which bodies are not measured against, only other places are.
/// - Of those whose body grows beyond what is left, one at a time goes on whatever it takes; the others wait for it, or for room.
/// - Of those who compute, one at a time is never made to wait. Who has a value between two steps does not compute, so he is not
///   that one.
struct MemoryAccounting {
  typealias Ticket = PriorityQueue.Ticket

  enum Claim: Equatable {
    /// To ask for a body, which is thought to become so large.
    case place(Int)
    /// To take a body of this size in.
    case body(Int)
    /// To take in so much more of it, by the share with this number.
    case growth(Int, share: Int)
    /// To compute with so much beside the bodies.
    case work(Int)
  }

  /// What somebody has.
  struct Holding: Equatable {
    var places = 0
    var bodies = 0
    var work = 0
    var workers = 0
  }

  /// In the order in which they are served: what lets others end goes before what begins something.
  private enum Stage: Int, CaseIterable { case work, growth, body, place }

  /// Bytes.
  let limit: Int
  /// What bodies and places may have of it; the rest is for those who compute.
  let limitOfBodies: Int
  /// How much of a body is taken at once before it has come, unless more is expected of any.
  let part: Int
  private(set) var held = Holding()
  private(set) var peak = 0
  /// How large a body is thought to become that nothing is known of: about as large as the last ones.
  private(set) var expectation: Int
  private var waiters: [Ticket: Claim] = [:]
  private var queues = [PriorityQueue](repeating: PriorityQueue(), count: Stage.allCases.count)
  /// The one share that may grow beyond the limit.
  private var overdrawn: Int?

  init(limit: Int) {
    self.limit = max(1, limit)
    limitOfBodies = self.limit - self.limit / 4
    part = limitOfBodies / 8
    expectation = min(4 << 20, limitOfBodies)
  }

  var waiting: Int { waiters.count }

  func isWaiting(_ ticket: Ticket) -> Bool { waiters[ticket] != nil }

  /// Bytes that are there, or are to come for sure.
  var inUse: Int { held.bodies + held.work }

  /// Somebody wants something. He waits unless he is among those who are served.
  ///
  /// - Returns: who has what he waited for now: who is next changes with who comes, and with how often a queue was served.
  mutating func claim(_ claim: Claim, _ ticket: Ticket, level: LoadPriority.Level) -> [Ticket] {
    if case .growth(_, let share) = claim, overdrawn == share {
      // The others who grow wait for this one's end, so it can't stand behind them.
      grant(claim)
      return [ticket]
    }
    waiters[ticket] = claim
    queues[Self.stage(of: claim).rawValue].insert(ticket, level)
    return served()
  }

  /// Grants a claim that nothing waits before, if the budget has it. Most claims are granted so.
  ///
  /// - Returns: whether it was granted. Otherwise nothing has changed.
  mutating func grantWithoutWaiting(_ claim: Claim) -> Bool {
    guard waiters.isEmpty, fits(claim) else { return false }
    grant(claim)
    return true
  }

  /// - Returns: who has what he waited for now.
  mutating func raise(_ ticket: Ticket, to level: LoadPriority.Level) -> [Ticket] {
    guard let claim = waiters[ticket], queues[Self.stage(of: claim).rawValue].raise(ticket, to: level) else { return [] }
    return served()
  }

  /// Somebody waits no more.
  ///
  /// - Returns: who has what he waited for now.
  mutating func withdraw(_ ticket: Ticket) -> [Ticket] {
    guard let claim = waiters.removeValue(forKey: ticket) else { return [] }
    queues[Self.stage(of: claim).rawValue].remove(ticket)
    return served()
  }

  /// Something comes back.
  ///
  /// - Parameter share: whose all is back; nil: it is a part.
  /// - Returns: who has what he waited for now.
  mutating func giveBack(_ holding: Holding, endOf share: Int? = nil) -> [Ticket] {
    held.places -= holding.places
    held.bodies -= holding.bodies
    held.work -= holding.work
    held.workers -= holding.workers
    // Who is back within the limit grows like everybody: he may be slow, and another one quick.
    if share != nil && overdrawn == share || isRoom(for: 0) { overdrawn = nil }
    return served()
  }

  /// Work has ended with a value, which is there for as long as somebody has it.
  ///
  /// - Returns: who has what he waited for now.
  mutating func settle(_ work: Holding, at bytes: Int) -> [Ticket] {
    held.work += bytes
    defer { peak = max(peak, inUse) }
    return giveBack(work)
  }

  /// Bytes that are there already.
  mutating func take(_ bytes: Int) {
    held.bodies += bytes
    peak = max(peak, inUse)
  }

  /// A body has turned out to be so large.
  mutating func learn(_ bytes: Int) {
    let seen = min(max(bytes, 64 << 10), limitOfBodies)
    expectation += (seen - expectation) / 8
  }

  private static func stage(of claim: Claim) -> Stage {
    switch claim {
    case .place: .place
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

  /// Serves who is next, if there is enough for him. He is waited for: who needs much would never have it otherwise.
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
    case .place(let bytes):
      return held.places + held.bodies == 0 || isRoom(for: bytes, beside: held.places)
    case .body(let bytes):
      // What is larger than the limit has it for itself.
      return held.bodies == 0 || isRoom(for: bytes)
    case .growth(let bytes, _):
      return isRoom(for: bytes) || overdrawn == nil
    case .work(let bytes):
      return held.workers == 0 || bytes <= limit - inUse
    }
  }

  private func isRoom(for bytes: Int, beside places: Int = 0) -> Bool {
    bytes <= limitOfBodies - held.bodies - places && bytes <= limit - inUse - places
  }

  private mutating func grant(_ claim: Claim) {
    switch claim {
    case .place(let bytes): held.places += bytes
    case .body(let bytes): held.bodies += bytes
    case .growth(let bytes, let share):
      if !isRoom(for: bytes) { overdrawn = share }
      held.bodies += bytes
    case .work(let bytes):
      held.work += bytes
      held.workers += 1
    }
    peak = max(peak, inUse)
  }
}
