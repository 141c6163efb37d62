#if Redis
public import CacheCore
public import NIOCore
internal import NIOPosix

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
    /// The number of connections to each server, from 1 to 64. Commands are pipelined.
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
#endif
