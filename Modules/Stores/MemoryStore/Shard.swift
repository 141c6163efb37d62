internal import CacheCore
internal import Synchronization

/// A part of a ``MemoryCache``, used only inside its lock.
///
/// Entries are stored in numbered slots. A table maps fingerprints to slots, and the policy orders the slots. Entries that leave
/// are passed to the caller, so that values are released outside the lock.
struct Shard<Policy: EvictionPolicy> {
  private var slots: SlotStorage
  // Pointers into `slots`, valid while the shard references it and up to `slots.count`.
  private var residents: UnsafeMutablePointer<SlotStorage.Resident>
  private var limits: UnsafeMutablePointer<SlotStorage.SlotLimits>
  private var isTimed: UnsafeMutablePointer<Bool>
  private var free: [Int] = []
  private var index = FingerprintTable()
  private var policy: Policy
  private(set) var cost = 0
  private(set) var counters = ShardCounters()

  init(_ policy: Policy) {
    self.policy = policy
    slots = SlotStorage()
    (residents, limits, isTimed) = (slots.residents, slots.limits, slots.isTimed)
  }

  var count: Int { index.count }

  @inline(__always)
  func slot(of key: CacheKey) -> Int? { index.first(key.fingerprint) { residents[$0].key == key } }

  // MARK: Reading

  /// The result of a lookup.
  enum LookupResult {
    case entry(MemoryEntry)
    case nothing
    /// The entry has a time to live, so ``entry(for:at:sliding:left:)`` must look it up.
    case timed
  }

  mutating func entry(for key: CacheKey) -> LookupResult {
    guard let slot = slot(of: key), let entry = residents[slot].entry else {
      counters.misses += 1
      return .nothing
    }
    if isTimed[slot] { return .timed }
    counters.hits += 1
    policy.access(slot)
    return .entry(entry)
  }

  /// Returns the entry of a key, unless it has expired by `now`. An expired entry leaves.
  ///
  /// - Parameter sliding: The time to live that a lookup restarts, unless the entry states its own, or `nil` if lookups restart
  ///   none.
  mutating func entry(
    for key: CacheKey, at now: Timestamp, sliding: Expiration?, left: inout EvictedEntries
  ) -> (entry: MemoryEntry?, freed: Weight) {
    let freed = removeExpired(key, at: now, left: &left)
    guard let slot = slot(of: key), let entry = residents[slot].entry else {
      counters.misses += 1
      return (nil, freed)
    }
    if isTimed[slot], let sliding { slide(slot, (entry.expiration ?? sliding).deadline(from: now)) }
    counters.hits += 1
    policy.access(slot)
    return (entry, freed)
  }

  private mutating func slide(_ slot: Int, _ deadline: Timestamp) {
    slots.write(SlotStorage.SlotLimits(deadline: deadline, cost: limits[slot].cost), to: slot)
  }

  /// Returns the entry unless it has expired. It counts neither as a hit nor as a miss.
  func resident(for key: CacheKey, at now: Timestamp) -> MemoryEntry? {
    guard let slot = slot(of: key) else { return nil }
    return !isTimed[slot] || now < limits[slot].deadline ? residents[slot].entry : nil
  }

  /// Returns the keys of the entries that have not expired.
  func keys(at now: Timestamp) -> [CacheKey] {
    (0..<slots.count).compactMap { slot in
      residents[slot].entry != nil && now < limits[slot].deadline ? residents[slot].key : nil
    }
  }

  // MARK: Storing

  /// Stores the new entry in the slot of its predecessor or in a free one. Its weight must already be claimed.
  mutating func place(
    _ entry: MemoryEntry, for key: CacheKey, _ newEntry: NewEntry, in predecessor: Int?, left: inout EvictedEntries
  ) {
    counters.insertions += 1
    let its = SlotStorage.SlotLimits(deadline: newEntry.deadline, cost: newEntry.cost)
    if let slot = predecessor {
      counters.left(.replaced)
      left.add(exchangeEntry(of: slot, for: entry))
      cost += newEntry.cost - limits[slot].cost
      slots.write(its, to: slot)
      policy.replace(slot, fingerprint: newEntry.fingerprint, cost: newEntry.cost)
      return
    }
    let slot: Int
    if let reused = free.popLast() {
      slot = reused
      residents[slot] = SlotStorage.Resident(key: key, entry: entry)
      slots.write(its, to: slot)
    } else {
      slot = slots.count
      if slots.isFull {
        slots = slots.grown()
        (residents, limits, isTimed) = (slots.residents, slots.limits, slots.isTimed)
      }
      slots.append(SlotStorage.Resident(key: key, entry: entry), its)
    }
    index.insert(slot, newEntry.fingerprint)
    cost += newEntry.cost
    policy.insert(slot, fingerprint: newEntry.fingerprint, cost: newEntry.cost)
  }

  func weight(of slot: Int) -> Weight { Weight(cost: limits[slot].cost, count: 1) }

  /// Evicts one entry and returns its weight, or `nil` if the policy evicts none.
  ///
  /// A policy is user code. If it returns an empty slot, the result must be neither a trap nor an endless loop.
  ///
  /// - Parameter predecessor: The slot of the entry that the new one replaces. If the policy evicts it, it counts as replaced.
  ///   Its weight is not returned, because the new entry already owns it.
  mutating func evict(
    _ reason: EvictionReason, toFit cost: Int, sparing predecessor: inout Int?, _ left: inout EvictedEntries
  ) -> Weight? {
    guard let slot = policy.evict(toFit: cost), (0..<slots.count).contains(slot), residents[slot].entry != nil else { return nil }
    guard slot == predecessor else { return vacate(slot, reason, &left) }
    predecessor = nil
    _ = vacate(slot, .replaced, &left)
    return Weight()
  }

  mutating func evict(_ reason: EvictionReason, toFit cost: Int, _ left: inout EvictedEntries) -> Weight? {
    var noPredecessor: Int?
    return evict(reason, toFit: cost, sparing: &noPredecessor, &left)
  }

  mutating func refuse() { counters.refusedInsertions += 1 }

  // MARK: Removing

  /// Removes the entry of a key and returns its weight.
  mutating func remove(
    _ key: CacheKey, ifRevision revision: Revision? = nil, _ reason: EvictionReason, left: inout EvictedEntries
  ) -> Weight {
    guard let slot = slot(of: key), revision == nil || residents[slot].entry?.revision == revision else { return Weight() }
    return take(slot, reason, &left)
  }

  mutating func removeAll(left: inout EvictedEntries) -> Weight {
    var weight = Weight()
    for slot in 0..<slots.count where residents[slot].entry != nil { weight += take(slot, .removed, &left) }
    slots = SlotStorage()
    (residents, limits, isTimed) = (slots.residents, slots.limits, slots.isTimed)
    free = []
    index.removeAll()
    return weight
  }

  /// Removes the entry of a key if it has expired by `now`.
  private mutating func removeExpired(_ key: CacheKey, at now: Timestamp, left: inout EvictedEntries) -> Weight {
    guard let slot = slot(of: key), limits[slot].deadline <= now else { return Weight() }
    return take(slot, .expired, &left)
  }

  mutating func removeExpired(at now: Timestamp, left: inout EvictedEntries) -> Weight {
    var weight = Weight()
    for slot in 0..<slots.count where residents[slot].entry != nil && limits[slot].deadline <= now {
      weight += take(slot, .expired, &left)
    }
    return weight
  }

  private func exchangeEntry(of slot: Int, for entry: MemoryEntry?) -> MemoryEntry? {
    var entry = entry
    swap(&entry, &residents[slot].entry)
    return entry
  }

  private mutating func take(_ slot: Int, _ reason: EvictionReason, _ left: inout EvictedEntries) -> Weight {
    policy.remove(slot)
    return vacate(slot, reason, &left)
  }

  private mutating func vacate(_ slot: Int, _ reason: EvictionReason, _ left: inout EvictedEntries) -> Weight {
    let weight = Weight(cost: limits[slot].cost, count: 1)
    index.remove(slot, residents[slot].key.fingerprint)
    left.add(exchangeEntry(of: slot, for: nil))
    residents[slot] = SlotStorage.Resident(key: FreeSlot.key, entry: nil)
    free.append(slot)
    cost -= weight.cost
    counters.left(reason)
    return weight
  }
}

/// The values of a new entry that limits and order need. They are numbers only, so that passing them touches no reference count.
struct NewEntry {
  let fingerprint: Int
  let cost: Int
  let deadline: Timestamp
}

private enum FreeSlot {
  static let key = CacheKey(resource: "")
}

/// The memory of a shard's slots. Keys and entries are in one cache line, apart from values that a hit seldom needs.
///
/// It is not an array: reading in place through a pointer copies nothing and touches no reference count. Two threads that hit the
/// same entry would otherwise contend for that count. Only one shard uses it, inside its lock.
final class SlotStorage {
  struct Resident {
    var key: CacheKey
    /// The entry, or `nil` if the slot is free.
    var entry: MemoryEntry?
  }

  struct SlotLimits {
    var deadline: Timestamp
    var cost: Int

    var isTimed: Bool { deadline.nanoseconds != .max }
  }

  let residents: UnsafeMutablePointer<Resident>
  let limits: UnsafeMutablePointer<SlotLimits>
  /// Whether a slot has a deadline at all. The byte is separate, so that most hits do not load the limits.
  let isTimed: UnsafeMutablePointer<Bool>
  private let capacity: Int
  /// The number of slots that were ever in use. Exactly these are initialized, which `deinit` relies on.
  private(set) var count = 0

  init(capacity: Int = 8) {
    residents = UnsafeMutableRawPointer.allocate(byteCount: capacity * MemoryLayout<Resident>.stride, alignment: 64)
      .bindMemory(to: Resident.self, capacity: capacity)
    limits = .allocate(capacity: capacity)
    isTimed = .allocate(capacity: capacity)
    self.capacity = capacity
  }

  deinit {
    residents.deinitialize(count: count)
    UnsafeMutableRawPointer(residents).deallocate()
    limits.deallocate()
    isTimed.deallocate()
  }

  var isFull: Bool { count == capacity }

  func write(_ new: SlotLimits, to slot: Int) {
    limits[slot] = new
    isTimed[slot] = new.isTimed
  }

  func append(_ resident: Resident, _ limits: SlotLimits) {
    precondition(!isFull)
    (residents + count).initialize(to: resident)
    (self.limits + count).initialize(to: limits)
    (isTimed + count).initialize(to: limits.isTimed)
    count += 1
  }

  /// Returns a storage of twice the capacity, to which all slots are moved.
  func grown() -> SlotStorage {
    let larger = SlotStorage(capacity: capacity * 2)
    larger.residents.moveInitialize(from: residents, count: count)
    larger.limits.moveInitialize(from: limits, count: count)
    larger.isTimed.moveInitialize(from: isTimed, count: count)
    (larger.count, count) = (count, 0)
    return larger
  }
}

/// The counters of a shard. They are numbers only, so that counting allocates nothing.
struct ShardCounters {
  var hits = 0
  var misses = 0
  var insertions = 0
  var refusedInsertions = 0
  private var size = 0
  private var count = 0
  private var expired = 0
  private var trimmed = 0
  private var replaced = 0
  private var removed = 0

  mutating func left(_ reason: EvictionReason) {
    switch reason {
    case .size: size += 1
    case .count: count += 1
    case .expired: expired += 1
    case .trimmed: trimmed += 1
    case .replaced: replaced += 1
    case .removed: removed += 1
    case .fullDisk: break  // Only disk stores have this reason.
    }
  }

  func add(to counters: inout MemoryCacheCounters) {
    counters.hits += hits
    counters.misses += misses
    counters.insertions += insertions
    counters.refusedInsertions += refusedInsertions
    let reasons: [(EvictionReason, Int)] = [
      (.size, size), (.count, count), (.expired, expired), (.trimmed, trimmed), (.replaced, replaced), (.removed, removed),
    ]
    for (reason, number) in reasons where number > 0 { counters.evictions[reason, default: 0] += number }
  }
}

/// The entries that have left a store. They are held until the lock is released, because the `deinit` of a value is user code. A
/// single entry, the usual case, needs no array.
struct EvictedEntries {
  private var one: MemoryEntry?
  private var more: [MemoryEntry] = []

  mutating func add(_ entry: MemoryEntry?) {
    guard let entry else { return }
    if one == nil { one = entry } else { more.append(entry) }
  }
}

/// A number of bytes and entries.
struct Weight {
  var cost = 0
  var count = 0

  static func += (a: inout Weight, b: Weight) {
    a.cost += b.cost
    a.count += b.count
  }
}

/// The total weight of a store's shards, and its limits.
///
/// Space is claimed before an entry is inserted and released after it has left, so the sums are never less than the actual
/// weight. A claim that would exceed a limit fails, so the sums are never more than the limits, whatever other shards do. Space
/// that an eviction frees remains claimed by the evicting thread until it inserts the new entry, so no other thread can take it.
struct Budget: ~Copyable {
  let limits: MemoryCache.Limits
  private let claimedCost = Atomic(0)
  private let claimedCount = Atomic(0)

  init(_ limits: MemoryCache.Limits) { self.limits = limits }

  var cost: Int { claimedCost.load(ordering: .relaxed) }
  var count: Int { claimedCount.load(ordering: .relaxed) }

  /// Raises `owned` to one entry of `cost` bytes. Returns `nil` on success, or the limit that prevents it. What was claimed until
  /// then remains in `owned`.
  func claim(_ cost: Int, _ owned: inout Weight) -> EvictionReason? {
    if owned.cost < cost {
      guard Self.raise(claimedCost, by: cost - owned.cost, within: limits.cost) else { return .size }
      owned.cost = cost
    }
    if owned.count < 1 {
      guard Self.raise(claimedCount, by: 1, within: limits.count) else { return .count }
      owned.count = 1
    }
    return nil
  }

  func release(_ weight: Weight) {
    if weight.cost > 0 { claimedCost.subtract(weight.cost, ordering: .relaxed) }
    if weight.count > 0 { claimedCount.subtract(weight.count, ordering: .relaxed) }
  }

  private static func raise(_ sum: borrowing Atomic<Int>, by amount: Int, within bound: Int) -> Bool {
    var current = sum.load(ordering: .relaxed)
    while current <= bound - amount {
      let (isDone, seen) = sum.weakCompareExchange(expected: current, desired: current + amount, ordering: .relaxed)
      if isDone { return true }
      current = seen
    }
    return false
  }
}
