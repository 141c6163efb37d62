#if Tool && Service
import Etagere

#if Redis
import Foundation
import RedisStore
import StoreComposition
#endif

extension ImageServer {
  /// Adds the Redis server of the settings to a cache: a shared store below the disk, and the fleet of its processes.
  ///
  /// - Returns: A function that returns the number of lookups and changes that failed on the server, or `nil` without a server.
  /// - Throws: `CacheError.Code.invalidConfiguration` if the URL is not valid, or without the trait `Redis`.
  static func share(
    _ cache: inout ResourceManager.Configuration, _ address: String?, _ disk: DiskCache?
  ) throws(CacheError) -> (@Sendable () -> Int)? {
    guard let address else { return nil }
    #if Redis
    guard let url = URL(string: address) else {
      throw CacheError(.invalidConfiguration, reason: "the setting 'redis' is not a URL")
    }
    let redis = try RedisCache(url: url)
    let stores: [any CacheStore] = if let disk { [disk, redis] } else { [redis] }
    let layers = try LayeredStore(stores)
    cache.store = layers
    cache.fleet = RedisFleet(redis)
    return { layers.counters.layers.last?.failures ?? 0 }
    #else
    throw CacheError(
      .invalidConfiguration, reason: "the setting 'redis' needs the trait Redis: swift build --traits Service,Redis")
    #endif
  }
}
#endif
