internal import CacheCore

/// The state of a ``MemoryCache`` for one eviction policy, used inside its lock only.
///
/// A slab: entries live in numbered slots, a dictionary leads from keys to slots, and the policy orders the slots. Everything that leaves is handed to
/// the caller, so that values are released outside the lock.
struct MemoryStorage<Policy: EvictionPolicy> {
  private struct Resident {
    var key: CacheKey
    var entry: MemoryEntry
    var deadline: Timestamp
  }

  private var slots: [Resident?] = []
  private var free: [Int] = []
  private var index: [CacheKey: Int] = [:]
  private var policy: Policy
  private(set) var totalCost = 0
  private(set) var counters = MemoryCacheCounters()

  init(policy: Policy) { self.policy = policy }

  var count: Int { index.count }

  /// - Parameter now: asked for only when the entry has a deadline.
  mutating func entry(
    for key: CacheKey, now: () -> Timestamp, sliding: Expiration?, left: inout [MemoryEntry]
  ) -> MemoryEntry? {
    guard let slot = index[key], let resident = slots[slot] else {
      counters.misses += 1
      return nil
    }
    if resident.deadline != .distantFuture {
      let now = now()
      guard now < resident.deadline else {
        take(slot, .expired, &left)
        counters.misses += 1
        return nil
      }
      if let expiration = resident.entry.expiration ?? sliding, sliding != nil {
        slots[slot]?.deadline = expiration.deadline(from: now)
      }
    }
    counters.hits += 1
    policy.access(slot)
    return resident.entry
  }

  /// The entry, unless it is expired; neither a hit nor a miss.
  func resident(for key: CacheKey, now: () -> Timestamp) -> MemoryEntry? {
    guard let slot = index[key], let resident = slots[slot] else { return nil }
    return resident.deadline == .distantFuture || now() < resident.deadline ? resident.entry : nil
  }

  /// The keys of what is not expired.
  func keys(at now: Timestamp) -> [CacheKey] {
    slots.compactMap { resident in resident.flatMap { now < $0.deadline ? $0.key : nil } }
  }

  mutating func insert(
    _ entry: MemoryEntry, for key: CacheKey, deadline: Timestamp, limits: MemoryCache.Limits, left: inout [MemoryEntry]
  ) -> Bool {
    if let slot = index[key] { take(slot, .replaced, &left) }
    guard entry.cost <= limits.entryCost, entry.cost <= limits.cost, limits.count > 0 else {
      counters.refusals += 1
      return false
    }
    // Room is made before the entry moves in: the limits hold at every instant.
    while totalCost > limits.cost - entry.cost, evict(.cost, toFit: entry.cost, &left) {}
    while index.count >= limits.count, evict(.count, toFit: entry.cost, &left) {}
    // A policy may refuse to name anybody. A limit that gave way then would be none.
    guard totalCost <= limits.cost - entry.cost, index.count < limits.count else {
      counters.refusals += 1
      return false
    }
    let slot: Int
    if let reused = free.popLast() {
      slot = reused
      slots[slot] = Resident(key: key, entry: entry, deadline: deadline)
    } else {
      slot = slots.count
      slots.append(Resident(key: key, entry: entry, deadline: deadline))
    }
    index[key] = slot
    totalCost += entry.cost
    policy.insert(slot, fingerprint: key.fingerprint, cost: entry.cost)
    counters.insertions += 1
    return true
  }

  mutating func remove(_ key: CacheKey, ifRevision revision: Revision?, left: inout [MemoryEntry]) {
    guard let slot = index[key], let resident = slots[slot] else { return }
    if let revision, resident.entry.revision != revision { return }
    take(slot, .removed, &left)
  }

  mutating func removeAll(left: inout [MemoryEntry]) {
    for slot in index.values { if let entry = slots[slot]?.entry { left.append(entry) } }
    counters.evictions[.removed, default: 0] += index.count
    for slot in index.values { policy.remove(slot) }
    slots = []
    free = []
    index = [:]
    totalCost = 0
  }

  mutating func trim(to cost: Int, left: inout [MemoryEntry]) {
    while totalCost > cost, evict(.trimmed, toFit: 0, &left) {}
  }

  mutating func removeExpired(at now: Timestamp, left: inout [MemoryEntry]) {
    let expired = index.values.filter { slot in slots[slot].map { $0.deadline <= now } ?? false }
    for slot in expired { take(slot, .expired, &left) }
  }

  /// Whether somebody left. A policy is a user's code: one that names a slot in which nobody lives must cost no trap and no endless loop.
  private mutating func evict(_ reason: MemoryCacheCounters.Reason, toFit cost: Int, _ left: inout [MemoryEntry]) -> Bool {
    guard let slot = policy.evict(toFit: cost), slots.indices.contains(slot), slots[slot] != nil else { return false }
    vacate(slot, reason, &left)
    return true
  }

  private mutating func take(_ slot: Int, _ reason: MemoryCacheCounters.Reason, _ left: inout [MemoryEntry]) {
    policy.remove(slot)
    vacate(slot, reason, &left)
  }

  private mutating func vacate(_ slot: Int, _ reason: MemoryCacheCounters.Reason, _ left: inout [MemoryEntry]) {
    guard let resident = slots[slot] else { return }
    slots[slot] = nil
    free.append(slot)
    index[resident.key] = nil
    totalCost -= resident.entry.cost
    counters.evictions[reason, default: 0] += 1
    left.append(resident.entry)
  }
}
