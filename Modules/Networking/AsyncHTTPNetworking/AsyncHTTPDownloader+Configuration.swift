#if AsyncHTTP
public import CacheCore
public import NIOCore
internal import NIOPosix

extension AsyncHTTPDownloader {
  /// The settings of an ``AsyncHTTPDownloader`` with its own client.
  ///
  /// ```swift
  /// let configuration = AsyncHTTPDownloader.Configuration {
  ///   $0.connectionsPerHost = 16
  ///   $0.addressPolicy = .publicOnly
  /// }
  /// ```
  public struct Configuration: Sendable {
    /// The maximum number of open connections to one host, at least 1. Further requests wait. With HTTP/2, many requests share
    /// one connection.
    public var connectionsPerHost = 8
    /// Whether an idempotent request without a body is sent again over another connection if the server closed its reused
    /// connection before it responded (RFC 9110 §9.2.2). A proxy may do so too. Other requests, such as `POST`, are never sent
    /// again. A request that was not sent yet always moves to another connection.
    public var resendsLostRequests = true
    /// The default maximum time without received data, greater than zero. A transfer that exceeds it fails with
    /// `CacheError.Code.timedOut`.
    ///
    /// Time in which the reader requests no bytes, or in which the source of a request body produces none, does not count.
    public var idleTimeout = Duration.seconds(60)
    /// The maximum time to connect, including name lookup, TCP, proxy and TLS. It is greater than zero.
    public var connectTimeout = Duration.seconds(10)
    /// The time after which an unused connection is closed, at least zero.
    public var connectionIdleTime = Duration.seconds(60)
    /// Whether HTTP/2 is used if TLS negotiates it (ALPN, RFC 7301). Otherwise HTTP/1.1 is used. Requests with a body always use
    /// HTTP/1.1: see <doc:AsyncHTTPNetworking>.
    public var allowsHTTP2 = true
    /// The HTTP or SOCKS 5 proxy for requests, or `nil` for none. HTTP over TLS to a proxy is not supported. The environment
    /// (`HTTP_PROXY`) is not read.
    ///
    /// Every request to an HTTP proxy uses a tunnel (`CONNECT`, RFC 9110 §9.3.6), even without TLS, so the proxy must allow that.
    /// A user and password are sent to an HTTP proxy (Basic, RFC 7617), but not to a SOCKS proxy.
    public var proxy: ProxySettings.Proxy?
    /// The trusted authorities and the identity of this client.
    public var tls = TLS()
    /// The policy for the addresses that may be connected to, or `nil` to allow all. <doc:AsyncHTTPNetworking> explains its
    /// guarantee.
    public var addressPolicy: AddressPolicy?
    /// The `User-Agent` of requests that have none, or `nil` to send none. It is added below the cache, which does not see it.
    public var userAgent: String?
    /// The event loop group for the client: by default SwiftNIO's, which the process shares. The owner of another group must shut
    /// it down after the downloader.
    public var eventLoopGroup: any EventLoopGroup = MultiThreadedEventLoopGroup.singleton

    func check() throws(CacheError) {
      try CacheError.require("connectionsPerHost", connectionsPerHost, in: 1...)
      try CacheError.require("idleTimeout", positive: idleTimeout)
      try CacheError.require("connectTimeout", positive: connectTimeout)
      try CacheError.require("connectionIdleTime", connectionIdleTime, in: .zero...)
      try CacheError.require("proxy.port", proxy?.port, in: 1...65_535)
    }

    /// Creates the default settings.
    public init() {}

    /// Creates the default settings and changes them with `change`.
    public init(_ change: (inout Configuration) -> Void) { change(&self) }
  }

  /// The trusted authorities and the identity of this client.
  public struct TLS: Hashable, Sendable {
    /// PEM-encoded certificates or keys (RFC 7468).
    public enum PEM: Hashable, Sendable {
      /// The path of a file, which is read when the downloader is created.
      case file(String)
      /// The encoded bytes.
      case bytes([UInt8])
    }

    /// The certificates of authorities that are trusted in addition to the system's.
    public var additionalRoots: [PEM] = []
    /// The client certificate for servers that request one, followed by its intermediate certificates. It needs a ``privateKey``.
    public var certificateChain: PEM?
    /// The private key of the client certificate, without a passphrase.
    public var privateKey: PEM?
    /// The hosts whose certificate is not verified, including its name, for tests and local machines. The names have no port.
    public var trustedHosts: Set<String> = []

    /// Returns whether a host's certificate is trusted without verification. Names are compared without case, in Unicode or ASCII
    /// form.
    func trusts(_ host: String) -> Bool {
      guard !trustedHosts.isEmpty else { return false }
      let name = HostName.comparable(host)
      return trustedHosts.contains { HostName.comparable($0) == name }
    }

    /// Creates settings that trust the system's authorities and have no identity.
    public init() {}
  }
}
#endif
