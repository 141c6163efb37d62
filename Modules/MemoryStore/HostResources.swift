#if canImport(Darwin)
private import Darwin
#elseif canImport(Glibc)
private import Glibc
#elseif canImport(Musl)
private import Musl
#endif

/// The resources of the machine.
enum HostResources {
  /// The memory in bytes, or `nil` if the system does not report it.
  static var memory: Int? {
    let pages = sysconf(Int32(_SC_PHYS_PAGES))
    let size = sysconf(Int32(_SC_PAGESIZE))
    return pages > 0 && size > 0 ? pages * size : nil
  }

  /// The number of active processors, at least one.
  static let processors = max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))

  /// Lets another thread run, because a thread that holds a lock may have been preempted.
  static func yield() { sched_yield() }
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

  /// Returns the greatest power of two up to `number`, from 1 to ``most``.
  static func powerOfTwo(_ number: Int) -> Int {
    let number = max(1, min(number, most))
    return 1 << (Int.bitWidth - 1 - number.leadingZeroBitCount)
  }
}
