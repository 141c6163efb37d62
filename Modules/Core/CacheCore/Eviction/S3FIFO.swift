/// A policy with three first-in, first-out queues. It evicts most new entries early and retains entries that are used again.
///
/// New entries enter a small queue, a tenth of the capacity. An entry that is used twice there moves to the main queue; the
/// others are evicted. A ghost queue remembers the fingerprints of evicted entries, up to 90 % of the capacity. A remembered
/// entry that returns goes directly to the main queue.
///
/// If the limits have room for fewer than 50 entries of the average cost, a tenth is too few: most entries would be evicted right
/// after they were stored. The small queue then has room for five entries and evicts the least recently used one. With room for
/// five entries or fewer, there is no main queue, so the policy is LRU.
///
/// An entry in the main queue gets another round for each use, at most three. A scan passes through without displacing entries in
/// use. A hit increments a two-bit count and moves nothing. Capacity is measured in bytes or in entries, whichever limit is
/// nearer.
///
/// Every operation is O(1). For `evict` that is amortized, because each round in the main queue was paid for by a use.
///
/// Source: Yang, Zhang, Qiu, Yue, Rashmi, "FIFO queues are all you need for cache eviction", SOSP '23, with the parameters of the
/// authors' libCacheSim.
public struct S3FIFO: EvictionPolicy {
  private struct Resident {
    var fingerprint = 0
    var cost = 0
    var isMain = false
  }

  private struct Queue {
    var slots = SlotQueue()
    var cost = 0
    var count = 0
  }

  private static let usesForMain: UInt8 = 2
  private static let mostUses: UInt8 = 3
  /// Limits the number of ghosts, because entries without a cost would otherwise be remembered without limit.
  private static let ghostsForEach = 8
  /// The number of entries that the small queue of a small cache has room for.
  private static let fewest = 5

  private var links = SlotLinks()
  private var residents: [Resident] = []
  // Separate from the other properties: a hit touches a single byte, close to those of other slots.
  private var uses: [UInt8] = []
  private var small = Queue()
  private var main = Queue()
  private var ghosts = GhostQueue()
  private var costBound = Int.max
  private var countBound = Int.max
  private var hasEvicted = false
  /// Whether a tenth of the capacity is less than ``fewest`` entries.
  private var isSmallCache = false

  /// Creates an empty policy.
  public init() {}

  public mutating func bound(cost: Int, count: Int) { (costBound, countBound) = (cost, count) }

  public mutating func insert(_ slot: Int, fingerprint: Int, cost: Int) {
    insert(slot, fingerprint: fingerprint, cost: cost, isKnown: ghosts.take(fingerprint))
  }

  /// Inserts the entry as a new one. It did not return, so it does not go to the main queue.
  public mutating func spare(_ slot: Int, fingerprint: Int, cost: Int) {
    _ = ghosts.take(fingerprint)
    insert(slot, fingerprint: fingerprint, cost: cost, isKnown: false)
  }

  private mutating func insert(_ slot: Int, fingerprint: Int, cost: Int, isKnown: Bool) {
    while residents.count <= slot {
      residents.append(Resident())
      uses.append(0)
    }
    uses[slot] = 0
    residents[slot] = Resident(fingerprint: fingerprint, cost: cost)
    isSmallCache = Self.isFew(fitting(held: small.cost + main.cost, count: small.count + main.count, with: cost))
    if isSmallCache {
      // The entry is among the last ones first, and goes to the main queue later. The main queue may have room for one entry.
      if isKnown { uses[slot] = Self.usesForMain }
      pushSmall(slot)
    } else if isKnown || (!hasEvicted && isSmallFull) {
      // Until the first eviction, entries that the small queue has no space for go to the main queue, because nothing must be
      // evicted for them yet.
      pushMain(slot)
    } else {
      pushSmall(slot)
    }
  }

  public mutating func access(_ slot: Int) {
    if uses[slot] < Self.mostUses { uses[slot] += 1 }
    if isSmallCache { renew(slot) }
  }

  /// Makes an entry the newest of the small queue of a small cache.
  private mutating func renew(_ slot: Int) {
    guard !residents[slot].isMain else { return }
    links.unlink(slot, from: &small.slots)
    links.push(slot, onto: &small.slots)
  }

  /// Updates the cost. A replacement does not count as a use, because its load has just looked up the same key.
  public mutating func replace(_ slot: Int, fingerprint: Int, cost: Int) {
    let change = cost - residents[slot].cost
    residents[slot].cost = cost
    if residents[slot].isMain { main.cost += change } else { small.cost += change }
    if isSmallCache { renew(slot) }
  }

  public mutating func remove(_ slot: Int) {
    let resident = residents[slot]
    if resident.isMain {
      links.unlink(slot, from: &main.slots)
      (main.cost, main.count) = (main.cost - resident.cost, main.count - 1)
    } else {
      links.unlink(slot, from: &small.slots)
      (small.cost, small.count) = (small.cost - resident.cost, small.count - 1)
    }
    if small.count + main.count == 0 { hasEvicted = false }
  }

  public mutating func evict(toFit cost: Int) -> Int? {
    hasEvicted = true
    let capacity = capacity(toFit: cost)
    if !isMainFull(capacity), let slot = evictSmall(capacity) { return slot }
    return evictMain() ?? evictSmall(capacity)
  }

  private func isMainFull(_ capacity: Capacity) -> Bool { (capacity.inCost ? main.cost : main.count) > capacity.mainShare }

  private mutating func evictSmall(_ capacity: Capacity) -> Int? {
    while let slot = popSmall() {
      if uses[slot] >= Self.usesForMain {
        uses[slot] = 0
        pushMain(slot)
        // In a small cache, the next entry may be the last one, and must not leave in place of one of the main queue.
        if isSmallCache, isMainFull(capacity) { return nil }
      } else {
        remember(residents[slot], capacity)
        return slot
      }
    }
    return nil
  }

  private mutating func evictMain() -> Int? {
    while let slot = popMain() {
      guard uses[slot] > 0 else { return slot }
      uses[slot] -= 1
      pushMain(slot)
    }
    return nil
  }

  private mutating func remember(_ resident: Resident, _ capacity: Capacity) {
    ghosts.push(resident.fingerprint, cost: resident.cost)
    let most = (small.count + main.count + Self.ghostsForEach) * Self.ghostsForEach
    while capacity.inCost ? ghosts.cost > capacity.ghostShare || ghosts.count > most : ghosts.count > capacity.ghostShare {
      ghosts.pop()
    }
  }

  // MARK: Shares

  /// The unit in which the queues are measured, and their capacities.
  private struct Capacity {
    let inCost: Bool
    let mainShare: Int
    let ghostShare: Int

    /// - Parameters:
    ///   - whole: The amount to divide.
    ///   - bound: The limit.
    ///   - fitting: The number of entries for which the limit has room.
    init(inCost: Bool, _ whole: Int, of bound: Int, fitting: Int) {
      self.inCost = inCost
      let share = whole - S3FIFO.smallShare(of: whole)
      let fewest = S3FIFO.fewest
      mainShare = S3FIFO.isFew(fitting) ? min(share, bound / max(1, fitting) * (max(fewest, fitting) - fewest)) : share
      ghostShare = Int(Double(whole) * 0.9)
    }
  }

  private static func isFew(_ fitting: Int) -> Bool { fitting < fewest * 10 }

  /// Returns the number of entries of the average cost for which the limits have room.
  private func fitting(held: Int, count: Int, with cost: Int = 0) -> Int {
    let average = (Double(held) + Double(cost)) / Double(cost > 0 ? count + 1 : max(1, count))
    let fitting = Double(costBound) / max(1, average)
    return fitting < Double(countBound) ? Int(fitting) : countBound
  }

  private static func smallShare(of whole: Int) -> Int { whole / 10 }

  private var isSmallFull: Bool {
    small.cost >= max(1, Self.smallShare(of: costBound)) || small.count >= max(1, Self.smallShare(of: countBound))
  }

  /// Returns the capacities for an eviction. The total is the resident amount plus the new entry, up to the limit. A shard may
  /// exceed its part of the store's limits or stay below it.
  private mutating func capacity(toFit cost: Int) -> Capacity {
    let (held, count) = (small.cost + main.cost, small.count + main.count)
    let inCost = Double(held) * Double(countBound) >= Double(count) * Double(costBound)
    let bound = inCost ? costBound : countBound
    let resident = inCost ? held : count
    let (sum, overflow) = resident.addingReportingOverflow(inCost ? cost : 1)
    let fitting = fitting(held: held, count: count)
    isSmallCache = Self.isFew(fitting)
    return Capacity(inCost: inCost, resident > bound ? resident : min(bound, overflow ? .max : sum), of: bound, fitting: fitting)
  }

  // MARK: Queues

  private mutating func pushSmall(_ slot: Int) {
    residents[slot].isMain = false
    links.push(slot, onto: &small.slots)
    (small.cost, small.count) = (small.cost + residents[slot].cost, small.count + 1)
  }

  private mutating func pushMain(_ slot: Int) {
    residents[slot].isMain = true
    links.push(slot, onto: &main.slots)
    (main.cost, main.count) = (main.cost + residents[slot].cost, main.count + 1)
  }

  private mutating func popSmall() -> Int? {
    guard let slot = links.popOldest(of: &small.slots) else { return nil }
    (small.cost, small.count) = (small.cost - residents[slot].cost, small.count - 1)
    return slot
  }

  private mutating func popMain() -> Int? {
    guard let slot = links.popOldest(of: &main.slots) else { return nil }
    (main.cost, main.count) = (main.cost - residents[slot].cost, main.count - 1)
    return slot
  }
}

/// A first-in, first-out queue of the fingerprints and costs of recently evicted entries. Every operation is amortized O(1).
struct GhostQueue: Sendable {
  private struct Ghost {
    var fingerprint: Int
    /// The cost, or -1 if the ghost was removed.
    var cost: Int
  }

  // A ring whose length is a power of two. Positions only increase.
  private var ring: [Ghost] = []
  private var first = 0
  private var end = 0
  private var places = FingerprintTable()
  private(set) var cost = 0

  var count: Int { places.count }

  /// Removes `fingerprint` and returns whether the queue contained it.
  mutating func take(_ fingerprint: Int) -> Bool {
    guard let place = places.first(fingerprint, where: { _ in true }) else { return false }
    drop(place)
    return true
  }

  mutating func push(_ fingerprint: Int, cost: Int) {
    guard places.first(fingerprint, where: { _ in true }) == nil else { return }
    if end - first == ring.count { rebuild() }
    let place = end & (ring.count - 1)
    ring[place] = Ghost(fingerprint: fingerprint, cost: cost)
    places.insert(place, fingerprint)
    self.cost += cost
    end += 1
  }

  /// Removes the oldest ghost.
  mutating func pop() {
    while first < end {
      let place = first & (ring.count - 1)
      first += 1
      if ring[place].cost >= 0 { return drop(place) }
    }
  }

  private mutating func drop(_ place: Int) {
    cost -= ring[place].cost
    places.remove(place, ring[place].fingerprint)
    ring[place].cost = -1
  }

  /// Closes the gaps, and grows the ring if there were few.
  private mutating func rebuild() {
    let ghosts = (first..<end).map { ring[$0 & (ring.count - 1)] }.filter { $0.cost >= 0 }
    let length = ghosts.count * 2 > ring.count ? ring.count * 2 : max(16, ring.count)
    self = GhostQueue()
    ring = [Ghost](repeating: Ghost(fingerprint: 0, cost: -1), count: length)
    for ghost in ghosts { push(ghost.fingerprint, cost: ghost.cost) }
  }
}

/// A hash table from 64-bit fingerprints to small numbers, with open addressing, linear probing and no tombstones.
///
/// Fingerprints must already be hashes, because their low bits select the cell. A cell has 16 bytes, while `Dictionary` would
/// hash the hash again and store whole keys. A fingerprint may have several numbers.
@usableFromInline
package struct FingerprintTable: Sendable {
  @usableFromInline
  struct Cell: Sendable {
    @usableFromInline var fingerprint: Int
    /// The number, or -1 if the cell is free.
    @usableFromInline var number: Int

    @inlinable
    init(fingerprint: Int, number: Int) { (self.fingerprint, self.number) = (fingerprint, number) }
  }

  @usableFromInline var cells: [Cell] = []
  @usableFromInline var mask = -1
  @usableFromInline package private(set) var count = 0

  package init() {}

  /// Returns the first number under `fingerprint` that satisfies the predicate.
  @inlinable
  package func first(_ fingerprint: Int, where isRight: (Int) -> Bool) -> Int? {
    guard count > 0 else { return nil }
    var place = fingerprint & mask
    while true {
      let cell = cells[place]
      if cell.number < 0 { return nil }
      if cell.fingerprint == fingerprint, isRight(cell.number) { return cell.number }
      place = (place + 1) & mask
    }
  }

  package mutating func insert(_ number: Int, _ fingerprint: Int) {
    if (count + 1) * 4 > cells.count * 3 { grow() }
    place(Cell(fingerprint: fingerprint, number: number))
    count += 1
  }

  package mutating func remove(_ number: Int, _ fingerprint: Int) {
    guard count > 0 else { return }
    var hole = fingerprint & mask
    while cells[hole].number != number || cells[hole].fingerprint != fingerprint {
      if cells[hole].number < 0 { return }
      hole = (hole + 1) & mask
    }
    // Move up the cells that were displaced because of this one.
    var next = (hole + 1) & mask
    while cells[next].number >= 0 {
      let home = cells[next].fingerprint & mask
      if (next - home) & mask >= (next - hole) & mask {
        cells[hole] = cells[next]
        hole = next
      }
      next = (next + 1) & mask
    }
    cells[hole].number = -1
    count -= 1
  }

  package mutating func removeAll() { self = FingerprintTable() }

  private mutating func place(_ cell: Cell) {
    var place = cell.fingerprint & mask
    while cells[place].number >= 0 { place = (place + 1) & mask }
    cells[place] = cell
  }

  private mutating func grow() {
    let old = cells
    cells = [Cell](repeating: Cell(fingerprint: 0, number: -1), count: max(8, old.count * 2))
    mask = cells.count - 1
    for cell in old where cell.number >= 0 { place(cell) }
  }
}
