#if Tool && Service
import Etagere

#if Redis
import Foundation
import RedisStore
import StoreComposition
#endif

/// The Redis server that processes share.
struct SharedTier: Sendable {
  /// Returns the number of lookups and changes that failed on the server.
  let failures: @Sendable () -> Int
  /// Tells the server about the leases that have just ended, and closes the connections.
  let close: @Sendable () async -> Void

  /// Adds the Redis server of the settings to a cache: a shared store below the disk, and the fleet of its processes.
  ///
  /// - Returns: `nil` if the settings have no server.
  /// - Throws: `CacheError.Code.invalidConfiguration` if the URL is not valid, or without the trait `Redis`.
  static func add(
    to cache: inout ResourceManager.Configuration, _ address: String?, _ disk: DiskCache?
  ) throws(CacheError) -> SharedTier? {
    guard let address else { return nil }
    #if Redis
    guard let url = URL(encoding: address) else {
      throw CacheError(.invalidConfiguration, reason: "the setting 'redis' is not a URL")
    }
    let redis = try RedisCache(url: url)
    let stores: [any CacheStore] = if let disk { [disk, redis] } else { [redis] }
    let layers = try LayeredStore(stores)
    cache.store = layers
    cache.fleet = RedisFleet(redis)
    return SharedTier(failures: { layers.counters.layers.last?.failures ?? 0 }, close: { await redis.close() })
    #else
    throw CacheError(
      .invalidConfiguration, reason: "the setting 'redis' needs the trait Redis: swift build --traits Service,Redis")
    #endif
  }
}
#endif
