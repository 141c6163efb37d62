#if Redis
public import CacheCore

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A store on a Redis or Valkey server, which several machines share.
///
/// ```swift
/// // rediss://cache:PASSWORD@cache.internal
/// let cache = try RedisCache(url: url, configuration: .init { $0.namespace = "shop" })
/// try await cache.store(bytes, for: key, metadata: metadata)
/// ```
///
/// It is written for Redis 6.2, Valkey 7.2 and later versions, and tested with Redis 7.0. Scripts make each commit, metadata
/// update and removal atomic. The server may evict any key at any time, and the entry is then a miss. After a failed attempt to
/// reach the server, calls throw `CacheError.Code.storeUnavailable` at once until it replies to a probe. Loads continue without
/// it. See <doc:RedisStore>.
public final class RedisCache: CacheStore {
  let engine: RedisEngine

  /// Creates a cache on a single server. It connects at the first call.
  ///
  /// - Parameters:
  ///   - url: `redis://[[user]:password@]host[:port][/database]`, `rediss://…` for TLS, or `unix:///path[?db=database]` for a
  ///     Unix domain socket.
  ///   - configuration: The settings.
  /// - Throws: `CacheError.Code.invalidConfiguration` if the URL or a setting is invalid, or if a certificate cannot be read.
  public convenience init(url: URL, configuration: Configuration = Configuration()) throws(CacheError) {
    try self.init([try RedisAddress(url)], isCluster: false, configuration)
  }

  /// Creates a cache on a cluster. It connects at the first call.
  ///
  /// - Parameters:
  ///   - urls: The URLs of one or more servers of the cluster, without a database. The others are found through them. All servers
  ///     use the credentials and the scheme of the first URL.
  ///   - configuration: The settings.
  /// - Throws: `CacheError.Code.invalidConfiguration` if a URL or a setting is invalid, or if a certificate cannot be read.
  public convenience init(cluster urls: [URL], configuration: Configuration = Configuration()) throws(CacheError) {
    var addresses: [RedisAddress] = []
    for url in urls { addresses.append(try RedisAddress(url)) }
    guard !addresses.isEmpty, addresses.allSatisfy({ $0.database == 0 }) else {
      throw CacheError(
        .invalidConfiguration, reason: "a Redis cluster needs the URL of at least one server, and has only the database 0")
    }
    try self.init(addresses, isCluster: true, configuration)
  }

  private init(_ addresses: [RedisAddress], isCluster: Bool, _ configuration: Configuration) throws(CacheError) {
    try configuration.validate()
    engine = try RedisEngine(addresses, isCluster: isCluster, configuration)
    // Two custom clocks cannot be compared, so only caches on the system clock can have equal identifiers.
    let servers = addresses.map { "\($0.endpoint)/\($0.database)" }.sorted().joined(separator: " ")
    id =
      configuration.clock is SystemClock
      ? ComponentID(RedisCache.self, parameters: "\(configuration.expiration) \(configuration.namespace) \(servers)")
      : .unique(RedisCache.self)
  }

  deinit { engine.router.close() }

  /// An identifier that is equal for caches with the same servers, namespace and time to live that use the system clock.
  public let id: ComponentID

  /// Returns `nil`, because other machines use the same server.
  public func unsharedPart() async -> (any CacheStore)? { nil }

  /// The configuration that the cache was created with.
  public var configuration: Configuration { engine.configuration }

  /// The operations of this cache since it was created.
  public var counters: RedisCounters { engine.counters }

  /// Closes the connections. Later calls throw `CacheError.Code.closed`.
  ///
  /// First, it tells the server about the leases that have just ended, so that other processes do not wait for them. If the
  /// server does not reply, that takes a few times ``Configuration-swift.struct/timeout``.
  public func close() async {
    await engine.waitForLeaseEnds()
    engine.router.close()
    for node in engine.router.nodes { await node.waitUntilClosed() }
  }
}
#endif
