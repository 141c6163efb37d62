import CacheCore
import CacheTesting
import MemoryStore

/// The hit ratios of the eviction policies for common patterns of requests.
struct RatiosScenario {
  private static let objects = 20_000
  private static let requests = 400_000

  func run() async throws -> ScenarioReport {
    var report = ScenarioReport(
      "ratios", "\(Self.requests) requests for \(Self.objects) objects, seed 1, one shard: object hit ratio")
    for pattern in Trace.Pattern.allCases {
      let trace = Trace(pattern, requests: Self.requests, objects: Self.objects, seed: 1)
      for share in [0.02, 0.1, 0.3] {
        let capacity = Int(Double(Self.objects) * share)
        var row = ScenarioReport.Row(name: "\(pattern.rawValue), room for \(Int(share * 100)) %")
        var ratios: [ReplayPolicy: Double] = [:]
        for policy in ReplayPolicy.allCases {
          let cache = policy.cache(.init(cost: .max, count: capacity, entryCost: .max))
          let ratio = trace.replay(into: cache).objectRatio
          ratios[policy] = ratio
          if let figure = Figure(policy.rawValue, .percent, [ratio * 100]) { row.figures.append(figure) }
        }
        report.rows.append(row)
        guard share <= 0.1, let own = ratios[.s3fifo], let lru = ratios[.lru] else { continue }
        report.goals.append(Goal("hit ratio for \(row.name): S3-FIFO, against LRU", own / lru, .atLeast(1)))
      }
    }
    return report
  }
}

/// The eviction policies by their names on the command line.
enum ReplayPolicy: String, CaseIterable {
  case s3fifo, lru, lfu

  func cache(_ limits: MemoryCache.Limits, shards: Int = 1) -> MemoryCache {
    switch self {
    case .s3fifo: MemoryCache(limits: limits, eviction: S3FIFO(), shards: shards)
    case .lru: MemoryCache(limits: limits, eviction: LeastRecentlyUsed(), shards: shards)
    case .lfu: MemoryCache(limits: limits, eviction: LeastFrequentlyUsed(), shards: shards)
    }
  }
}
