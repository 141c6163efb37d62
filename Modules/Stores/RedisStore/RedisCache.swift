#if Redis
public import CacheCore
public import NIOCore
internal import NIOPosix

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

extension RedisCache {
  /// The settings of a ``RedisCache``.
  ///
  /// ```swift
  /// let configuration = RedisCache.Configuration {
  ///   $0.namespace = "shop"
  ///   $0.timeout = .milliseconds(250)
  /// }
  /// ```
  public struct Configuration: Sendable {
    /// The first part of the names of all keys, which separates caches on one server. It has 1 to 64 bytes from the letters and
    /// digits of ASCII, `.`, `-`, `_` and `:`.
    public var namespace = "etagere"
    /// The maximum time for name lookup and the TCP connection. TLS and authentication have ``timeout``.
    public var connectTimeout = Duration.seconds(2)
    /// The maximum time from sending commands to their replies. When it has passed, the connections to the server are closed, and
    /// calls fail at once until the server replies to a probe. A call can send commands several times.
    public var timeout = Duration.seconds(1)
    /// The longest interval between two attempts to reconnect. The first follows at once, and each further interval is twice as
    /// long.
    public var longestRetryInterval = Duration.seconds(5)
    /// The shortest interval between two connections that are closed because the server is read-only.
    package var readOnlyRetryInterval = Duration.seconds(5)
    /// The number of connections to each server, from 1 to 64. Commands are pipelined, and two connections share an event loop.
    public var connections = 2
    /// The maximum number of calls that wait for replies on one connection. Further calls fail with
    /// `CacheError.Code.overloaded`.
    public var pendingCallLimit = 1_024
    /// The maximum size of one body in bytes. A larger body is refused with `CacheError.Code.entryTooLarge`. The default is
    /// 64 MiB.
    public var entrySizeLimit: Int64 = 64 << 20
    /// The time to live of entries whose metadata states none, in addition to the one that follows from their freshness. It
    /// counts from `StoredMetadata.responseTime`, so a 304 restarts it.
    public var expiration = Expiration.never
    /// The time for which a stale entry remains in the server, so that it can be revalidated. It starts when the entry is no
    /// longer fresh and may no longer be served stale. The default is one day.
    public var staleRetention = Duration.seconds(86_400)
    /// The time for which the body of a replaced or removed entry remains for readers that have opened it.
    public var replacedBodyRetention = Duration.seconds(60)
    /// The trusted authorities and the identity of this client, for `rediss` URLs.
    public var tls = TLS()
    /// The clock for expiration. Timeouts and intervals use the system's clock.
    public var clock: any CacheClock = SystemClock()
    /// The event loop group for the connections: by default SwiftNIO's, which the process shares.
    public var eventLoopGroup: any EventLoopGroup = MultiThreadedEventLoopGroup.singleton

    /// Creates the default settings.
    public init() {}

    /// Creates the default settings and changes them with `change`.
    public init(_ change: (inout Configuration) -> Void) { change(&self) }

    func validate() throws(CacheError) {
      let isAllowed: (UInt8) -> Bool = { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
          UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: ":"):
          true
        default: false
        }
      }
      guard (1...64).contains(namespace.utf8.count), namespace.utf8.allSatisfy(isAllowed) else {
        throw CacheError(
          .invalidConfiguration, reason: "namespace must have 1 to 64 letters, digits or '.-_:', not \"\(namespace)\"")
      }
      try CacheError.require("connections", connections, in: 1...64)
      try CacheError.require("pendingCallLimit", pendingCallLimit, in: 1...)
      try CacheError.require("entrySizeLimit", entrySizeLimit, in: 0...)
      try CacheError.require("connectTimeout", positive: connectTimeout)
      try CacheError.require("timeout", positive: timeout)
      try CacheError.require("longestRetryInterval", positive: longestRetryInterval)
      try CacheError.require("staleRetention", staleRetention, in: .zero...)
      try CacheError.require("replacedBodyRetention", replacedBodyRetention, in: .zero...)
    }
  }

  /// The trusted authorities and the identity of this client.
  public struct TLS: Hashable, Sendable {
    /// The paths of PEM files with certificates of authorities that are trusted in addition to the system's.
    public var additionalRoots: [String] = []
    /// The path of a PEM file with the client certificate, followed by its intermediate certificates. It needs a ``privateKey``.
    public var certificateChain: String?
    /// The path of a PEM file with the private key of the client certificate, without a passphrase.
    public var privateKey: String?

    /// Creates settings that trust the system's authorities and have no identity.
    public init() {}
  }
}

extension RedisCache {
  /// Returns the variants of a resource. Bodies of up to 64 KiB are in memory and already checked.
  public func variants(of resource: String) async throws(CacheError) -> [StoredEntry] {
    try await engine.variants(of: resource)
  }

  /// Whether the cache is on a single server. Connecting then takes at most `connectTimeout` plus `timeout`, and each of the few
  /// commands of a lookup takes at most `timeout`. A lookup in a cluster may first try all its servers.
  public var boundsLookupTime: Bool { !engine.isCluster }

  public func transforms(of resource: String) async throws(CacheError) -> [ListedEntry] {
    try await engine.transforms(of: resource)
  }

  public func entry(for key: CacheKey, range: Range<Int64>?) async throws(CacheError) -> StoredEntry? {
    try await engine.entry(for: key, range: range)
  }

  /// Starts an entry. Up to 512 KiB of its body stay in memory. A larger body goes to the server as it arrives, where lookups do
  /// not find it before the commit.
  ///
  /// - Throws: `CacheError.Code.entryTooLarge` if the metadata states a length above the limit.
  public func makeWriter(for key: CacheKey, metadata: StoredMetadata) async throws(CacheError) -> any EntryWriter {
    try SpooledWriter(metadata, RedisEntryStorage(key, engine))
  }

  /// Starts an entry like ``makeWriter(for:metadata:)``.
  ///
  /// - Throws: `CacheError.Code.entryTooLarge`. The commit throws `CacheError.Code.superseded` if a later lease has been granted.
  public func makeWriter(
    for key: CacheKey, metadata: StoredMetadata, lease: any RequestLease
  ) async throws(CacheError) -> any EntryWriter {
    try SpooledWriter(metadata, RedisEntryStorage(key, engine, lease: lease))
  }

  /// Replaces the metadata in one atomic step, without sending the body. The entry keeps its revision and the length of its body.
  public func updateMetadata(of key: CacheKey, to metadata: StoredMetadata, ifRevision revision: Revision)
    async throws(CacheError) -> Bool
  {
    try await engine.updateMetadata(of: key, to: metadata, ifRevision: revision)
  }

  public func remove(_ key: CacheKey, ifRevision revision: Revision?) async throws(CacheError) {
    try await engine.remove(key, ifRevision: revision)
  }

  /// Removes several entries, up to 128 of them with one request.
  public func remove(_ keys: [CacheKey]) async throws(CacheError) { try await engine.remove(keys) }

  /// Removes every entry committed before the call. It looks at all keys of the servers, in steps.
  public func removeAll() async throws(CacheError) { try await engine.removeAll() }

  /// Returns the wanted entries. It looks at all keys of the servers, in steps, and reads the metadata of every entry.
  public func entries(
    where isWanted: @escaping @Sendable (CacheKey, StoredMetadata) -> Bool
  ) async throws(CacheError) -> [ListedEntry] {
    try await engine.entries(where: isWanted)
  }

  /// Returns the keys of the entries with a cache tag. It reads an index if no server evicts keys. Otherwise it scans all keys of
  /// the database, because a server may have evicted the index.
  public func keys(tagged tag: String) async throws(CacheError) -> Set<CacheKey> { try await engine.keys(tagged: tag) }
}

/// The number of operations of a ``RedisCache`` since it was created.
public struct RedisCounters: Hashable, Sendable {
  /// Lookups that found an entry.
  public var hits = 0
  /// Lookups that found no entry, or only an expired or damaged one.
  public var misses = 0
  /// Entries found damaged, or without their body because the server evicted it.
  public var damaged = 0
  /// Entries that were committed.
  public var writes = 0
  /// Entries whose write or commit failed.
  public var failedWrites = 0
  /// Calls to the server that failed because it was unavailable or because too many calls were pending.
  public var failedCalls = 0
  /// Connections that the server closed, or that were closed because a reply was late.
  public var lostConnections = 0
  /// Commands that a cluster redirected to another node.
  public var redirections = 0

  /// Creates counters that are all zero.
  public init() {}
}
#endif
