/// How many shards a store is made of: each is a lock and an order of its own, and an order of few entries decides badly.
enum ShardCount {
  /// What a shard should be able to hold: below twice as many entries there is one shard.
  static let entriesPerShard = 1_024
  /// What an entry is taken to weigh where the count has no bound.
  static let usualCost = 16 << 10
  static let most = 64

  /// A power of two: as many as the limits fill, at most four for each processor.
  static func suiting(_ limits: MemoryCache.Limits, processors: Int = HostResources.processors) -> Int {
    let entries = min(limits.count, limits.cost / usualCost)
    return powerOfTwo(min(entries / entriesPerShard, processors * 4))
  }

  /// The greatest power of two that is not greater than `number`, from 1 to ``most``.
  static func powerOfTwo(_ number: Int) -> Int {
    let number = max(1, min(number, most))
    return 1 << (Int.bitWidth - 1 - number.leadingZeroBitCount)
  }
}
