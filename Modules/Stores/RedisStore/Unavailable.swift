#if !Redis
/// Unavailable without the trait `Redis`. The initializers have the labels of the real ones, because the compiler reports wrong
/// labels first.
@available(*, unavailable, message: "enable the trait 'Redis' of the package etagere")
public struct RedisCache {
  public init(url: Any, configuration: Any = ()) {}
  public init(cluster: Any, configuration: Any = ()) {}
}

/// Unavailable without the trait `Redis`.
@available(*, unavailable, message: "enable the trait 'Redis' of the package etagere")
public struct RedisFleet {
  public init(_ cache: Any, leaseDuration: Any = (), memberTimeout: Any = (), member: Any = ()) {}
}

/// Unavailable without the trait `Redis`.
@available(*, unavailable, message: "enable the trait 'Redis' of the package etagere")
public struct RedisCounters {}
#endif
