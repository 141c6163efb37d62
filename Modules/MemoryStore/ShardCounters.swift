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
