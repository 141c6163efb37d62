internal import CacheCore

/// One part of a ``MemoryCache``, used inside its lock only.
///
/// A slab: entries live in numbered slots, a table leads from fingerprints to slots, and the policy orders the slots. What leaves is handed to the
/// caller, so that values are released outside the lock.
struct Shard<Policy: EvictionPolicy> {
  private var slab: Slab
  // The slab's own, which lives as long as the shard has it: valid up to `slab.count`.
  private var residents: UnsafeMutablePointer<Slab.Resident>
  private var terms: UnsafeMutablePointer<Slab.Terms>
  private var free: [Int] = []
  private var index = FingerprintTable()
  private var policy: Policy
  private(set) var cost = 0
  private(set) var tally = Tally()
  /// Rises with each removal that was asked for.
  private(set) var removals = 0

  init(_ policy: Policy) {
    self.policy = policy
    slab = Slab()
    (residents, terms) = (slab.residents, slab.terms)
  }

  var count: Int { index.count }

  @inline(__always)
  func slot(of key: CacheKey) -> Int? { index.first(key.fingerprint) { residents[$0].key == key } }

  // MARK: Reading

  mutating func entry(
    for key: CacheKey, lifetimes: Lifetimes, budget: borrowing Budget, left: inout Departures
  ) -> MemoryEntry? {
    guard let slot = slot(of: key), !terms[slot].deadline.isFinite || isAlive(slot, lifetimes, budget, &left) else {
      tally.misses += 1
      return nil
    }
    tally.hits += 1
    policy.access(slot)
    return residents[slot].entry
  }

  /// Takes it out when it is not.
  private mutating func isAlive(
    _ slot: Int, _ lifetimes: Lifetimes, _ budget: borrowing Budget, _ left: inout Departures
  ) -> Bool {
    let now = lifetimes.clock.now
    guard now < terms[slot].deadline else {
      budget.release(take(slot, .expired, &left))
      return false
    }
    if let sliding = lifetimes.sliding {
      terms[slot].deadline = (residents[slot].entry?.expiration ?? sliding).deadline(from: now)
    }
    return true
  }

  /// The entry, unless it is expired; neither a hit nor a miss.
  func resident(for key: CacheKey, lifetimes: Lifetimes) -> MemoryEntry? {
    guard let slot = slot(of: key) else { return nil }
    return !terms[slot].deadline.isFinite || lifetimes.clock.now < terms[slot].deadline ? residents[slot].entry : nil
  }

  /// The keys of what is not expired.
  func keys(at now: Timestamp) -> [CacheKey] {
    (0..<slab.count).compactMap { slot in
      residents[slot].entry != nil && now < terms[slot].deadline ? residents[slot].key : nil
    }
  }

  // MARK: Storing

  /// Puts the newcomer where its predecessor is, or into a free slot. Its weight is claimed already.
  mutating func place(_ newcomer: Newcomer, left: inout Departures) {
    tally.insertions += 1
    let its = Slab.Terms(deadline: newcomer.deadline, cost: newcomer.cost)
    let fingerprint = newcomer.key.fingerprint
    if let slot = slot(of: newcomer.key) {
      tally.left(.replaced)
      left.add(residents[slot].entry)
      cost += newcomer.cost - terms[slot].cost
      residents[slot].entry = newcomer.entry
      terms[slot] = its
      policy.replace(slot, fingerprint: fingerprint, cost: newcomer.cost)
      return
    }
    let slot: Int
    if let reused = free.popLast() {
      slot = reused
      residents[slot] = Slab.Resident(key: newcomer.key, entry: newcomer.entry)
      terms[slot] = its
    } else {
      slot = slab.count
      if slab.isFull {
        slab = slab.grown()
        (residents, terms) = (slab.residents, slab.terms)
      }
      slab.append(Slab.Resident(key: newcomer.key, entry: newcomer.entry), its)
    }
    index.insert(slot, fingerprint)
    cost += newcomer.cost
    policy.insert(slot, fingerprint: fingerprint, cost: newcomer.cost)
  }

  /// What the key holds already, as its successor's own.
  func weight(of key: CacheKey) -> Weight { slot(of: key).map { Weight(cost: terms[$0].cost, count: 1) } ?? Weight() }

  /// Whom the policy names. It is a user's code: one that names a slot in which nobody lives must cost no trap and no endless loop.
  private mutating func victim(toFit cost: Int) -> Int? {
    guard let slot = policy.evict(toFit: cost), (0..<slab.count).contains(slot), residents[slot].entry != nil else { return nil }
    return slot
  }

  /// Lets one entry go, and tells what it weighed; nil when nobody leaves.
  mutating func evict(_ reason: MemoryCacheCounters.Reason, toFit cost: Int, _ left: inout Departures) -> Weight? {
    guard let slot = victim(toFit: cost) else { return nil }
    return vacate(slot, reason, &left)
  }

  /// The same for a newcomer, whose predecessor is nobody's victim: that one is replaced, and its weight was the newcomer's before.
  mutating func evict(
    _ reason: MemoryCacheCounters.Reason, for newcomer: Newcomer, _ left: inout Departures
  ) -> Weight? {
    guard let slot = victim(toFit: newcomer.cost) else { return nil }
    let isPredecessor = residents[slot].key == newcomer.key
    let weight = vacate(slot, isPredecessor ? .replaced : reason, &left)
    return isPredecessor ? Weight() : weight
  }

  mutating func refuse() { tally.refusals += 1 }

  // MARK: Removing

  /// Takes out what the key holds, and tells what it weighed.
  mutating func remove(
    _ key: CacheKey, ifRevision revision: Revision? = nil, _ reason: MemoryCacheCounters.Reason, left: inout Departures
  ) -> Weight {
    if reason == .removed { removals += 1 }
    guard let slot = slot(of: key), revision == nil || residents[slot].entry?.revision == revision else { return Weight() }
    return take(slot, reason, &left)
  }

  mutating func removeAll(left: inout Departures) -> Weight {
    removals += 1
    var weight = Weight()
    for slot in 0..<slab.count where residents[slot].entry != nil { weight += take(slot, .removed, &left) }
    slab = Slab()
    (residents, terms) = (slab.residents, slab.terms)
    free = []
    index.removeAll()
    return weight
  }

  mutating func removeExpired(at now: Timestamp, left: inout Departures) -> Weight {
    var weight = Weight()
    for slot in 0..<slab.count where residents[slot].entry != nil && terms[slot].deadline <= now {
      weight += take(slot, .expired, &left)
    }
    return weight
  }

  private mutating func take(_ slot: Int, _ reason: MemoryCacheCounters.Reason, _ left: inout Departures) -> Weight {
    policy.remove(slot)
    return vacate(slot, reason, &left)
  }

  private mutating func vacate(_ slot: Int, _ reason: MemoryCacheCounters.Reason, _ left: inout Departures) -> Weight {
    let weight = Weight(cost: terms[slot].cost, count: 1)
    left.add(residents[slot].entry)
    index.remove(slot, residents[slot].key.fingerprint)
    residents[slot] = Slab.Resident(key: Vacancy.key, entry: nil)
    free.append(slot)
    cost -= weight.cost
    tally.left(reason)
    return weight
  }
}

/// What comes to live in a store.
struct Newcomer {
  let key: CacheKey
  let entry: MemoryEntry
  let cost: Int
  let deadline: Timestamp
}

private enum Vacancy {
  static let key = CacheKey(resource: "")
}
