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
    policy.bound(
      cost: Self.share(of: limits.cost, among: count), count: Self.share(of: limits.count, among: count))
    shards = .allocate(capacity: count)
    for number in 0..<count { (shards + number).initialize(to: ShardCell(policy)) }
  }

  deinit {
    shards.deinitialize(count: shardCount)
    shards.deallocate()
  }

  static func share(of bound: Int, among count: Int) -> Int { bound == .max ? .max : bound / count }

  // Use the high bits, because the table inside a shard uses the low ones.
  func number(of key: CacheKey) -> Int { (key.fingerprint >> 48) & (shardCount - 1) }

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
