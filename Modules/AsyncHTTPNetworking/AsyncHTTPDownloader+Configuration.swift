#if AsyncHTTP
public import CacheCore
public import NIOCore
internal import NIOPosix

extension AsyncHTTPDownloader {
  /// How an ``AsyncHTTPDownloader`` with a client of its own asks.
  ///
  /// ```swift
  /// let configuration = AsyncHTTPDownloader.Configuration {
  ///   $0.connectionsPerHost = 16
  ///   $0.addressPolicy = .publicOnly
  /// }
  /// ```
  public struct Configuration: Sendable {
    /// Connections that are open to one host at once; further requests wait for their turn. With HTTP/2 many requests share one
    /// connection.
    public var connectionsPerHost = 8
    /// Whether an idempotent request that met a kept connection which the server gave up at that moment is sent again over
    /// another one. A proxy leaves that to its clients: the server may have given it up because of the request. One that was not
    /// sent yet goes over another connection in any case.
    public var resendsLostRequests = true
    /// How long nothing may come before a transfer fails with `CacheError.Code.timedOut`, for requests that set none of their
    /// own.
    ///
    /// Time in which the reader does not ask for bytes, or in which a request's own body is not there yet, does not count.
    public var idleTimeout = Duration.seconds(60)
    /// How long connecting may take: name, TCP, proxy and TLS together.
    public var connectTimeout = Duration.seconds(10)
    /// How long a connection that nobody uses is kept.
    public var connectionIdleTime = Duration.seconds(60)
    /// Whether HTTP/2 is used where TLS agrees on it (ALPN, RFC 7301). Otherwise HTTP/1.1 is used. Requests with a body always
    /// use HTTP/1.1: see `Modules/AsyncHTTPNetworking/AsyncHTTPNetworking.docc/AsyncHTTPNetworking.md`.
    public var allowsHTTP2 = true
    /// The proxy that requests go through, or `nil` for none: HTTP or SOCKS 5, not HTTP over TLS. The environment (`HTTP_PROXY`)
    /// is not read.
    ///
    /// To an HTTP proxy every request is a tunnel (`CONNECT`, RFC 9110 §9.3.6), also one in plain text, so it must allow that. A
    /// user and password are sent to an HTTP proxy (Basic, RFC 7617), and not to a SOCKS proxy.
    public var proxy: ProxySettings.Proxy?
    /// Whom TLS trusts, and who this client is.
    public var tls = TLS()
    /// Which addresses may be connected to; nil: all. See
    /// `Modules/AsyncHTTPNetworking/AsyncHTTPNetworking.docc/AsyncHTTPNetworking.md` for how strong the guarantee is.
    public var addressPolicy: AddressPolicy?
    /// `User-Agent` of requests that have none; nil: none is sent. It is added below the cache, which does not see it.
    public var userAgent: String?
    /// The threads that do the work: SwiftNIO's, shared by the process, unless another group is given. Whose it is shuts it down,
    /// after the downloader.
    public var eventLoopGroup: any EventLoopGroup = MultiThreadedEventLoopGroup.singleton

    /// The defaults.
    public init() {}

    /// The defaults, changed by `change`.
    public init(_ change: (inout Configuration) -> Void) { change(&self) }
  }

  /// Whom TLS trusts, and who this client is.
  public struct TLS: Hashable, Sendable {
    /// Certificates or keys as text (PEM, RFC 7468).
    public enum PEM: Hashable, Sendable {
      /// In a file, which is read when the downloader is made.
      case file(String)
      /// At hand.
      case bytes([UInt8])
    }

    /// Certificates of authorities that are trusted besides the system's.
    public var additionalRoots: [PEM] = []
    /// The client's certificate, for servers that ask for one, followed by those that lead to one the server trusts. It needs a
    /// ``privateKey``.
    public var certificateChain: PEM?
    /// The private key of the client's certificate, without a passphrase.
    public var privateKey: PEM?
    /// Hosts whose certificate is not looked at, not even for its name: for tests and machines of one's own. Names without a
    /// port.
    public var trustedHosts: Set<String> = []

    /// Whether the certificate of a host is not looked at. Case does not count, and an international name may be in Unicode or in
    /// ASCII.
    func trusts(_ host: String) -> Bool {
      guard !trustedHosts.isEmpty else { return false }
      let name = HostName.comparable(host)
      return trustedHosts.contains { HostName.comparable($0) == name }
    }

    /// The system's authorities, and no identity.
    public init() {}
  }
}
#endif
