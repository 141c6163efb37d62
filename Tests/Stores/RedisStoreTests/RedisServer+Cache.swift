#if Redis
import LocalRedis
import RedisStore

extension RedisServer {
  /// A cache on this server. Its timeouts are long, because a busy machine can stop the server for seconds.
  func cache(_ change: (inout RedisCache.Configuration) -> Void = { _ in }) throws -> RedisCache {
    try RedisCache(
      url: url,
      configuration: .init {
        $0.timeout = .seconds(60)
        $0.connectTimeout = .seconds(60)
        $0.readOnlyRetryInterval = .seconds(3_600)
        change(&$0)
      })
  }
}
#endif
