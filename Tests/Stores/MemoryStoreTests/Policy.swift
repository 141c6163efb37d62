import CacheCore
import CacheTesting
import MemoryStore
import Testing

/// The eviction policies of this package.
enum Policy: String, CaseIterable, CustomTestStringConvertible {
  case s3FIFO, leastRecentlyUsed, leastFrequentlyUsed

  var testDescription: String { rawValue }

  var made: any EvictionPolicy {
    switch self {
    case .s3FIFO: S3FIFO()
    case .leastRecentlyUsed: LeastRecentlyUsed()
    case .leastFrequentlyUsed: LeastFrequentlyUsed()
    }
  }

  func cache(_ limits: MemoryCache.Limits, clock: any CacheClock = ManualClock(), shards: Int? = nil) -> MemoryCache {
    MemoryCache(limits: limits, eviction: made, clock: clock, shards: shards)
  }
}
