internal import CacheCore

/// The shards of a ``MemoryCache``, for one eviction policy.
///
/// Proof of `@unchecked Sendable`: `shards` is written only in `init` and `deinit`, and its elements are accessed through each
/// shard's own lock.
///
/// Each call collects evicted entries in a local variable that outlives the critical section, because the `deinit` of a value is
/// user code. The calls of every load are specialized for the common policies. A class behind a protocol would otherwise run
/// unspecialized and look up its types each time.
final class ShardedStorage<Policy: EvictionPolicy>: EntryStorage, @unchecked Sendable {
  // The padding prevents two shards from sharing a cache line, which would make threads with different locks wait for each other.
  struct ShardCell: ~Copyable {
    let lock: Lock<Shard<Policy>>
    private let padding: (Int, Int, Int, Int, Int, Int, Int, Int) = (0, 0, 0, 0, 0, 0, 0, 0)

    init(_ policy: Policy) { lock = Lock(Shard(policy)) }
  }

  let shardCount: Int
  let budget: Budget
  let ttl: TTLPolicy
  private let shards: UnsafeMutablePointer<ShardCell>

  init(_ policy: Policy, _ limits: MemoryCache.Limits, _ ttl: TTLPolicy, shards count: Int) {
    shardCount = count
    budget = Budget(limits)
    self.ttl = ttl
    var policy = policy
    policy.bound(cost: Self.share(of: limits.cost, among: count), count: Self.share(of: limits.count, among: count))
    shards = .allocate(capacity: count)
    for number in 0..<count { (shards + number).initialize(to: ShardCell(policy)) }
  }

  deinit {
    shards.deinitialize(count: shardCount)
    shards.deallocate()
  }

  static func share(of bound: Int, among count: Int) -> Int { bound == .max ? .max : bound / count }

  func number(of key: CacheKey) -> Int { ShardCount.shard(of: key.fingerprint, among: shardCount) }

  func withShard<Result>(_ number: Int, _ body: (inout Shard<Policy>) -> Result) -> Result {
    shards[number].lock.withLock(body)
  }

  /// Returns `nil` if another thread holds the shard's lock.
  func withShardIfFree<Result>(_ number: Int, _ body: (inout Shard<Policy>) -> Result) -> Result? {
    shards[number].lock.withLockIfAvailable(body)
  }

  // MARK: Reading

  #if compiler(>=6.3)
  @specialized(where Policy == S3FIFO)
  @specialized(where Policy == LeastRecentlyUsed)
  @specialized(where Policy == LeastFrequentlyUsed)
  #endif
  func entry(for key: CacheKey) -> MemoryEntry? {
    switch withShard(number(of: key), { $0.entry(for: key) }) {
    case .entry(let entry): return entry
    case .nothing: return nil
    case .timed: return timedEntry(for: key)
    }
  }

  /// Looks up an entry with a time to live. The clock is user code, so it is read between two critical sections.
  #if compiler(>=6.3)
  @specialized(where Policy == S3FIFO)
  @specialized(where Policy == LeastRecentlyUsed)
  @specialized(where Policy == LeastFrequentlyUsed)
  #endif
  @inline(never)
  private func timedEntry(for key: CacheKey) -> MemoryEntry? {
    let now = ttl.clock.now
    var left = EvictedEntries()
    return withShard(number(of: key)) { shard in
      let (entry, freed) = shard.entry(for: key, at: now, sliding: ttl.sliding, left: &left)
      budget.release(freed)
      return entry
    }
  }

  func keys() -> [CacheKey] {
    let now = ttl.clock.now
    return (0..<shardCount).flatMap { number in withShard(number) { $0.keys(at: now) } }
  }

  var cost: Int { budget.cost }
  var count: Int { budget.count }

  var counters: MemoryCacheCounters {
    var counters = MemoryCacheCounters()
    for number in 0..<shardCount { withShard(number) { $0.counters }.add(to: &counters) }
    return counters
  }

  // MARK: Storing

  #if compiler(>=6.3)
  @specialized(where Policy == S3FIFO)
  @specialized(where Policy == LeastRecentlyUsed)
  @specialized(where Policy == LeastFrequentlyUsed)
  #endif
  func insert(_ entry: MemoryEntry, for key: CacheKey) -> Bool {
    var left = EvictedEntries()
    let newEntry = newEntry(entry, key, at: ttl.clock.now)
    let number = number(of: key)
    return withShard(number) { insert(entry, for: key, newEntry, into: &$0, number, &left) }
  }

  #if compiler(>=6.3)
  @specialized(where Policy == S3FIFO)
  @specialized(where Policy == LeastRecentlyUsed)
  @specialized(where Policy == LeastFrequentlyUsed)
  #endif
  func update(_ key: CacheKey, _ change: (MemoryEntry?) -> MemoryUpdate) -> Bool {
    var left = EvictedEntries()
    let number = number(of: key)
    // The clock is user code, so it is not read inside the lock.
    let now = ttl.clock.now
    return withShard(number) { shard in
      switch change(shard.resident(for: key, at: now)) {
      case .keep: return false
      case .remove:
        budget.release(shard.remove(key, .removed, left: &left))
        return true
      case .replace(let entry): return insert(entry, for: key, newEntry(entry, key, at: now), into: &shard, number, &left)
      }
    }
  }

  private func newEntry(_ entry: MemoryEntry, _ key: CacheKey, at now: @autoclosure () -> Timestamp) -> NewEntry {
    NewEntry(
      fingerprint: key.fingerprint, cost: budget.limits.cost(of: entry, key), deadline: ttl.deadline(of: entry, from: now()))
  }

  // MARK: Removing

  func remove(_ key: CacheKey, ifRevision: Revision?) {
    var left = EvictedEntries()
    withShard(number(of: key)) { budget.release($0.remove(key, ifRevision: ifRevision, .removed, left: &left)) }
  }

  func removeAll() {
    for number in 0..<shardCount {
      var left = EvictedEntries()
      withShard(number) { budget.release($0.removeAll(left: &left)) }
    }
  }

  func removeExpired() {
    let now = ttl.clock.now
    for number in 0..<shardCount {
      var left = EvictedEntries()
      withShard(number) { budget.release($0.removeExpired(at: now, left: &left)) }
    }
  }

  /// Trims each shard to its share. Then the shards evict one entry each in turn until the target is reached or none can evict.
  func trim(to target: Int) {
    let share = Double(max(0, target)) / Double(max(1, cost))
    for number in 0..<shardCount where shardCount > 1 {
      var left = EvictedEntries()
      withShard(number) { shard in
        let part = (Double(shard.cost) * share).rounded(.up)
        while Double(shard.cost) > part, let weight = shard.evict(.trimmed, toFit: 0, &left) { budget.release(weight) }
      }
    }
    var hasGiven = true
    while hasGiven, cost > target {
      hasGiven = false
      for number in 0..<shardCount where cost > target {
        var left = EvictedEntries()
        withShard(number) { shard in
          guard let weight = shard.evict(.trimmed, toFit: 0, &left) else { return }
          budget.release(weight)
          hasGiven = true
        }
      }
    }
  }
}

extension ShardedStorage {
  /// Inserts a new entry after claiming its space, so that the limits hold at every instant.
  ///
  /// Everything happens in one critical section of the new entry's shard. Otherwise the insertion could undo a removal that
  /// happened in between.
  func insert(
    _ entry: MemoryEntry, for key: CacheKey, _ newEntry: NewEntry, into shard: inout Shard<Policy>, _ number: Int,
    _ left: inout EvictedEntries
  ) -> Bool {
    let limits = budget.limits
    guard newEntry.cost <= limits.entryCost, newEntry.cost <= limits.cost, limits.count > 0 else {
      budget.release(shard.remove(key, .replaced, left: &left))
      shard.refuse()
      return false
    }
    var predecessor = shard.slot(of: key)
    var owned = predecessor.map { shard.weight(of: $0) } ?? Weight()
    while let reason = budget.claim(newEntry.cost, &owned) {
      if !isLarge(newEntry, reason),
        let weight = evictElsewhere(reason, for: newEntry, number, shard, &left)
          ?? shard.evict(reason, toFit: newEntry.cost, sparing: &predecessor, &left)
      {
        owned += weight
        continue
      }
      if shardCount > 1, gather(for: newEntry, number, &shard, sparing: &predecessor, &owned, &left) { break }
      _ = shard.remove(key, .replaced, left: &left)
      budget.release(owned)
      shard.refuse()
      return false
    }
    shard.place(entry, for: key, newEntry, in: predecessor, left: &left)
    budget.release(Weight(cost: owned.cost - newEntry.cost, count: owned.count - 1))
    return true
  }

  /// Returns whether an entry exceeds an eighth of its shard's share. Evicting for it from this shard alone would remove entries
  /// in use.
  private func isLarge(_ newEntry: NewEntry, _ reason: EvictionReason) -> Bool {
    shardCount > 1 && reason == .size && newEntry.cost > Self.share(of: budget.limits.cost, among: shardCount) / 8
  }

  /// Returns the weight of a shard and its share of the limit that `reason` refers to.
  private func filling(_ shard: borrowing Shard<Policy>, _ reason: EvictionReason) -> (held: Int, part: Int) {
    reason == .size
      ? (shard.cost, Self.share(of: budget.limits.cost, among: shardCount))
      : (shard.count, Self.share(of: budget.limits.count, among: shardCount))
  }

  func holdsClearlyLess(_ shard: borrowing Shard<Policy>, _ reason: EvictionReason) -> Bool {
    let (held, part) = filling(shard, reason)
    return held < part - part / 8
  }

  /// Returns any other shard. The bits of the fingerprint serve as a random choice.
  func anotherShard(than number: Int, for newEntry: NewEntry) -> Int {
    (number + 1 + Int(UInt(bitPattern: newEntry.fingerprint) >> 16) % (shardCount - 1)) % shardCount
  }

  /// Evicts from another shard if this one is clearly below its share and the other one exceeds its share. Otherwise, the
  /// distribution between shards would depend on chance.
  private func evictElsewhere(
    _ reason: EvictionReason, for newEntry: NewEntry, _ number: Int, _ own: borrowing Shard<Policy>,
    _ left: inout EvictedEntries
  ) -> Weight? {
    guard shardCount > 1, holdsClearlyLess(own, reason) else { return nil }
    return withShardIfFree(anotherShard(than: number, for: newEntry)) { shard in
      let (held, part) = filling(shard, reason)
      return held > part ? shard.evict(reason, toFit: newEntry.cost, &left) : nil
    }.flatMap(\.self)
  }
}

/// The amount of space that a visit to one shard freed.
private enum ShardContribution {
  case nothing, something, enough
}

extension ShardedStorage {
  /// Frees the space that a new entry needs by evicting from all shards in turn, about as much from each. Returns `false` if that
  /// fails.
  ///
  /// The new entry's shard stays locked. No thread waits for a second lock, because two threads could then deadlock. A busy shard
  /// is skipped and tried again in the next round. Without contention, all shards evict until the space suffices.
  func gather(
    for newEntry: NewEntry, _ number: Int, _ own: inout Shard<Policy>, sparing predecessor: inout Int?, _ owned: inout Weight,
    _ left: inout EvictedEntries
  ) -> Bool {
    var givers = shardCount
    var roundsLeft = rounds(for: number)
    let first = first(for: newEntry, number, own)
    while roundsLeft > 0 {
      let part = lack(of: newEntry, owned) / givers
      var given = 0
      var isAnyShardBusy = false
      for step in 0..<shardCount {
        let visited = (first + step) % shardCount
        let contribution =
          visited == number
          ? take(part, for: newEntry, from: &own, sparing: &predecessor, &owned, &left)
          : withShardIfFree(visited) { shard in
            // The slots of another shard are unrelated to the predecessor's.
            var noPredecessor: Int?
            return take(part, for: newEntry, from: &shard, sparing: &noPredecessor, &owned, &left)
          }
        switch contribution {
        case .enough: return true
        case .something: given += 1
        case .nothing: break
        case nil: isAnyShardBusy = true
        }
      }
      guard given > 0 || isAnyShardBusy else { return false }
      if given == 0 {
        roundsLeft -= 1
        HostResources.yield()
      }
      givers = max(1, given)
    }
    return false
  }

  /// Returns the number of rounds that may free nothing. It differs between shards: if two threads block each other's space, one
  /// gives up first, and the other can take its space.
  private func rounds(for number: Int) -> Int { 64 + number }

  private func first(for newEntry: NewEntry, _ number: Int, _ own: borrowing Shard<Policy>) -> Int {
    holdsClearlyLess(own, .size) ? anotherShard(than: number, for: newEntry) : number
  }

  /// Returns the number of bytes that must still be freed.
  private func lack(of newEntry: NewEntry, _ owned: Weight) -> Int {
    newEntry.cost - owned.cost - (budget.limits.cost - budget.cost)
  }

  /// Evicts until `part` bytes are freed, at least one entry.
  private func take(
    _ part: Int, for newEntry: NewEntry, from shard: inout Shard<Policy>, sparing predecessor: inout Int?,
    _ owned: inout Weight, _ left: inout EvictedEntries
  ) -> ShardContribution {
    var contribution = ShardContribution.nothing
    var taken = 0
    while let reason = budget.claim(newEntry.cost, &owned) {
      guard contribution == .nothing || taken < part,
        let weight = shard.evict(reason, toFit: newEntry.cost, sparing: &predecessor, &left)
      else { return contribution }
      owned += weight
      taken += weight.cost
      contribution = .something
    }
    return .enough
  }
}

/// The shards of a store, with the type of their policy erased.
protocol EntryStorage: AnyObject, Sendable {
  var shardCount: Int { get }
  /// The number of bytes of all entries.
  var cost: Int { get }
  var count: Int { get }
  var counters: MemoryCacheCounters { get }

  func entry(for key: CacheKey) -> MemoryEntry?
  func insert(_ entry: MemoryEntry, for key: CacheKey) -> Bool
  func update(_ key: CacheKey, _ change: (MemoryEntry?) -> MemoryUpdate) -> Bool
  func remove(_ key: CacheKey, ifRevision: Revision?)
  func removeAll()
  func trim(to cost: Int)
  func removeExpired()
  func keys() -> [CacheKey]
}

/// The rules for when entries of a store expire. It is a class, so that a hit does not copy values that it seldom needs.
final class TTLPolicy: Sendable {
  let clock: any CacheClock
  /// The time to live of entries that state none.
  let usual: Expiration
  let slidesOnRead: Bool

  init(clock: any CacheClock, usual: Expiration, slidesOnRead: Bool) {
    (self.clock, self.usual, self.slidesOnRead) = (clock, usual, slidesOnRead)
  }

  var sliding: Expiration? { slidesOnRead ? usual : nil }

  /// - Parameter now: The current time, which is evaluated only if the deadline depends on it.
  func deadline(of entry: MemoryEntry, from now: @autoclosure () -> Timestamp) -> Timestamp {
    switch entry.expiration ?? usual {
    case .never: .distantFuture
    case let expiration: expiration.deadline(from: now())
    }
  }
}

/// The number of shards of a store. Each has its own lock and its own eviction order, which works poorly with few entries.
enum ShardCount {
  /// The minimum capacity of a shard. A store with less than twice this capacity has one shard.
  static let entriesPerShard = 1_024
  /// The assumed cost of an entry if the count has no limit.
  static let usualCost = 16 << 10
  static let most = 64

  /// Returns a power of two: as many shards as the limits fill, at most four for each processor.
  static func suiting(_ limits: MemoryCache.Limits, processors: Int = HostResources.processors) -> Int {
    let entries = min(limits.count, limits.cost / usualCost)
    return powerOfTwo(min(entries / entriesPerShard, processors * 4))
  }

  /// Returns the shard of a hash: its high bits, because the table inside a shard uses the low ones. Older watches have `Int`s
  /// of 32 bits.
  static func shard<Hash: FixedWidthInteger>(of hash: Hash, among count: Hash) -> Hash {
    (hash >> (Hash.bitWidth - 16)) & (count - 1)
  }

  /// Returns the greatest power of two up to `number`, from 1 to ``most``.
  static func powerOfTwo(_ number: Int) -> Int {
    let number = max(1, min(number, most))
    return 1 << (Int.bitWidth - 1 - number.leadingZeroBitCount)
  }
}
