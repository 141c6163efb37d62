internal import CacheCore

/// One part of a ``MemoryCache``, used inside its lock only.
///
/// A slab: entries live in numbered slots, a table leads from fingerprints to slots, and the policy orders the slots. What leaves
/// is handed to the caller, so that values are released outside the lock.
struct Shard<Policy: EvictionPolicy> {
  private var slab: Slab
  // The slab's own, which lives as long as the shard has it: valid up to `slab.count`.
  private var residents: UnsafeMutablePointer<Slab.Resident>
  private var terms: UnsafeMutablePointer<Slab.Terms>
  private var isTimed: UnsafeMutablePointer<Bool>
  private var free: [Int] = []
  private var index = FingerprintTable()
  private var policy: Policy
  private(set) var cost = 0
  private(set) var tally = Tally()

  init(_ policy: Policy) {
    self.policy = policy
    slab = Slab()
    (residents, terms, isTimed) = (slab.residents, slab.terms, slab.isTimed)
  }

  var count: Int { index.count }

  @inline(__always)
  func slot(of key: CacheKey) -> Int? { index.first(key.fingerprint) { residents[$0].key == key } }

  // MARK: Reading

  /// What a look-up has found.
  enum Finding {
    case entry(MemoryEntry)
    case nothing
    /// It must leave, by ``removeExpired(_:at:left:)``: here nobody holds what leaves until the lock is open.
    case expired(Timestamp)
  }

  mutating func entry(for key: CacheKey, lifetimes: Lifetimes) -> Finding {
    guard let slot = slot(of: key), let entry = residents[slot].entry else {
      tally.misses += 1
      return .nothing
    }
    if isTimed[slot] {
      let now = lifetimes.clock.now
      guard now < terms[slot].deadline else {
        tally.misses += 1
        return .expired(now)
      }
      if let sliding = lifetimes.sliding { slide(slot, (entry.expiration ?? sliding).deadline(from: now)) }
    }
    tally.hits += 1
    policy.access(slot)
    return .entry(entry)
  }

  private mutating func slide(_ slot: Int, _ deadline: Timestamp) {
    slab.write(Slab.Terms(deadline: deadline, cost: terms[slot].cost), to: slot)
  }

  /// The entry, unless it is expired; neither a hit nor a miss.
  func resident(for key: CacheKey, lifetimes: Lifetimes) -> MemoryEntry? {
    guard let slot = slot(of: key) else { return nil }
    return !isTimed[slot] || lifetimes.clock.now < terms[slot].deadline ? residents[slot].entry : nil
  }

  /// The keys of what is not expired.
  func keys(at now: Timestamp) -> [CacheKey] {
    (0..<slab.count).compactMap { slot in
      residents[slot].entry != nil && now < terms[slot].deadline ? residents[slot].key : nil
    }
  }

  // MARK: Storing

  /// Puts the newcomer into its predecessor's slot, or a free one. Its weight is claimed already.
  mutating func place(
    _ entry: MemoryEntry, for key: CacheKey, _ newcomer: Newcomer, in predecessor: Int?, left: inout Departures
  ) {
    tally.insertions += 1
    let its = Slab.Terms(deadline: newcomer.deadline, cost: newcomer.cost)
    if let slot = predecessor {
      tally.left(.replaced)
      left.add(exchangeEntry(of: slot, for: entry))
      cost += newcomer.cost - terms[slot].cost
      slab.write(its, to: slot)
      policy.replace(slot, fingerprint: newcomer.fingerprint, cost: newcomer.cost)
      return
    }
    let slot: Int
    if let reused = free.popLast() {
      slot = reused
      residents[slot] = Slab.Resident(key: key, entry: entry)
      slab.write(its, to: slot)
    } else {
      slot = slab.count
      if slab.isFull {
        slab = slab.grown()
        (residents, terms, isTimed) = (slab.residents, slab.terms, slab.isTimed)
      }
      slab.append(Slab.Resident(key: key, entry: entry), its)
    }
    index.insert(slot, newcomer.fingerprint)
    cost += newcomer.cost
    policy.insert(slot, fingerprint: newcomer.fingerprint, cost: newcomer.cost)
  }

  func weight(of slot: Int) -> Weight { Weight(cost: terms[slot].cost, count: 1) }

  /// Lets one entry go, and tells what it weighed; nil when nobody leaves.
  ///
  /// A policy is a user's code: one that names a slot in which nobody lives must cost no trap and no endless loop.
  ///
  /// - Parameter predecessor: whom the newcomer replaces. When it is its turn to leave, it is replaced, and nobody's victim; what
  ///   it weighed was the newcomer's before.
  mutating func evict(
    _ reason: MemoryCacheCounters.Reason, toFit cost: Int, sparing predecessor: inout Int?, _ left: inout Departures
  ) -> Weight? {
    guard let slot = policy.evict(toFit: cost), (0..<slab.count).contains(slot), residents[slot].entry != nil else { return nil }
    guard slot == predecessor else { return vacate(slot, reason, &left) }
    predecessor = nil
    _ = vacate(slot, .replaced, &left)
    return Weight()
  }

  mutating func evict(_ reason: MemoryCacheCounters.Reason, toFit cost: Int, _ left: inout Departures) -> Weight? {
    var nobody: Int?
    return evict(reason, toFit: cost, sparing: &nobody, &left)
  }

  mutating func refuse() { tally.refusals += 1 }

  // MARK: Removing

  /// Takes out what the key holds, and tells what it weighed.
  mutating func remove(
    _ key: CacheKey, ifRevision revision: Revision? = nil, _ reason: MemoryCacheCounters.Reason, left: inout Departures
  ) -> Weight {
    guard let slot = slot(of: key), revision == nil || residents[slot].entry?.revision == revision else { return Weight() }
    return take(slot, reason, &left)
  }

  mutating func removeAll(left: inout Departures) -> Weight {
    var weight = Weight()
    for slot in 0..<slab.count where residents[slot].entry != nil { weight += take(slot, .removed, &left) }
    slab = Slab()
    (residents, terms, isTimed) = (slab.residents, slab.terms, slab.isTimed)
    free = []
    index.removeAll()
    return weight
  }

  /// Takes out what the key holds, if it is expired by then.
  mutating func removeExpired(_ key: CacheKey, at now: Timestamp, left: inout Departures) -> Weight {
    guard let slot = slot(of: key), terms[slot].deadline <= now else { return Weight() }
    return take(slot, .expired, &left)
  }

  mutating func removeExpired(at now: Timestamp, left: inout Departures) -> Weight {
    var weight = Weight()
    for slot in 0..<slab.count where residents[slot].entry != nil && terms[slot].deadline <= now {
      weight += take(slot, .expired, &left)
    }
    return weight
  }

  private func exchangeEntry(of slot: Int, for entry: MemoryEntry?) -> MemoryEntry? {
    var entry = entry
    swap(&entry, &residents[slot].entry)
    return entry
  }

  private mutating func take(_ slot: Int, _ reason: MemoryCacheCounters.Reason, _ left: inout Departures) -> Weight {
    policy.remove(slot)
    return vacate(slot, reason, &left)
  }

  private mutating func vacate(_ slot: Int, _ reason: MemoryCacheCounters.Reason, _ left: inout Departures) -> Weight {
    let weight = Weight(cost: terms[slot].cost, count: 1)
    index.remove(slot, residents[slot].key.fingerprint)
    left.add(exchangeEntry(of: slot, for: nil))
    residents[slot] = Slab.Resident(key: Vacancy.key, entry: nil)
    free.append(slot)
    cost -= weight.cost
    tally.left(reason)
    return weight
  }
}

/// What the bounds and the order need to know of an entry that comes to live in a store. Numbers only: it travels without
/// touching a reference count.
struct Newcomer {
  let fingerprint: Int
  let cost: Int
  let deadline: Timestamp
}

private enum Vacancy {
  static let key = CacheKey(resource: "")
}
