#if AsyncHTTP
public import AsyncHTTPClient
public import CacheCore
public import NIOCore
internal import NIOPosix
internal import NIOSSL

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

extension AsyncHTTPDownloader.Configuration {
  /// The client's configuration. It disables redirects, decoding and connection retries. It counts connections, checks
  /// the addresses of their peers, and guards against their responses.
  func client(counting connections: ConnectionCount) throws(CacheError) -> HTTPClient.Configuration {
    var client = HTTPClient.Configuration()
    client.redirectConfiguration = .disallow
    client.decompression = .disabled
    // A span for each transaction costs every request, even without a collector. `metrics` has the same information.
    client.tracing.tracer = nil
    client.httpVersion = allowsHTTP2 ? .automatic : .http1Only
    client.timeout = .init(connect: TimeAmount(connectTimeout))
    client.connectionPool.idleTimeout = TimeAmount(connectionIdleTime)
    client.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = max(connectionsPerHost, 1)
    // Otherwise the client retries a refused connection until the connect timeout. Retries are the caller's decision.
    client.connectionPool.retryConnectionEstablishment = false
    client.tlsConfiguration = try tls.client()
    if let proxy { client.proxy = try HTTPClient.Configuration.Proxy(proxy) }
    // Through a proxy, the peer is the proxy, which the configuration trusts.
    let check = proxy == nil ? addressPolicy.map(PeerCheck.init) : nil
    let initializer: @Sendable (any Channel) -> EventLoopFuture<Void> = { channel in
      connections.note()
      return check?.check(channel) ?? channel.eventLoop.makeSucceededVoidFuture()
    }
    client.http1_1ConnectionDebugInitializer = { channel in
      do {
        try connections.marks.install(in: channel)
        try LostReusedConnection.reportLosses(of: channel)
        return initializer(channel)
      } catch {
        return channel.eventLoop.makeFailedFuture(error)
      }
    }
    client.http2ConnectionDebugInitializer = initializer
    client.http2StreamChannelDebugInitializer = { channel in
      channel.eventLoop.makeCompletedFuture { try connections.marks.install(inStream: channel) }
    }
    AsyncHTTPDownloader.guardResponses(of: &client)
    return client
  }
}

extension AsyncHTTPDownloader {
  /// Makes the connections of a client of your own repair and refuse malformed responses as the downloader's own client does.
  ///
  /// Without it, a response with a status below 100 ends the process (async-http-client 1.37). The article
  /// <doc:AsyncHTTPNetworking> lists the forms.
  ///
  /// ```swift
  /// import AsyncHTTPClient
  /// import AsyncHTTPNetworking
  ///
  /// var configuration = HTTPClient.Configuration(redirectConfiguration: .disallow)
  /// AsyncHTTPDownloader.guardResponses(of: &configuration)
  /// let client = HTTPClient(configuration: configuration)
  /// ```
  ///
  /// - Parameter configuration: The configuration, whose `http1_1ConnectionDebugInitializer` and
  ///   `http2StreamChannelDebugInitializer` are wrapped. Set your own ones before.
  public static func guardResponses(of configuration: inout HTTPClient.Configuration) {
    let (connection, stream) =
      (configuration.http1_1ConnectionDebugInitializer, configuration.http2StreamChannelDebugInitializer)
    configuration.http1_1ConnectionDebugInitializer = { channel in
      let installed = channel.eventLoop.makeCompletedFuture { try ResponseGuard.install(in: channel) }
      return connection.map { initialize in installed.flatMap { initialize(channel) } } ?? installed
    }
    configuration.http2StreamChannelDebugInitializer = { channel in
      let installed = channel.eventLoop.makeCompletedFuture { try ResponseGuard.install(inStream: channel) }
      return stream.map { initialize in installed.flatMap { initialize(channel) } } ?? installed
    }
  }
}

extension AsyncHTTPDownloader.TLS {
  /// The client's TLS configuration for hosts that are not trusted without verification.
  func client() throws(CacheError) -> TLSConfiguration {
    var client = TLSConfiguration.makeClientConfiguration()
    for root in additionalRoots { client.additionalTrustRoots.append(.certificates(try root.certificates())) }
    guard (certificateChain == nil) == (privateKey == nil) else {
      throw CacheError(.invalidConfiguration, reason: "a client certificate needs both certificateChain and privateKey")
    }
    if let certificateChain, let privateKey {
      client.certificateChain = try certificateChain.certificates().map { .certificate($0) }
      client.privateKey = .privateKey(try privateKey.privateKey())
    }
    return client
  }

  /// The client's TLS configuration for trusted hosts.
  func unverifiedClient() throws(CacheError) -> TLSConfiguration {
    var client = try client()
    client.certificateVerification = .none
    return client
  }
}

extension AsyncHTTPDownloader.TLS.PEM {
  fileprivate func certificates() throws(CacheError) -> [NIOSSLCertificate] {
    let certificates = try read("certificates") {
      switch self {
      case .file(let path): try NIOSSLCertificate.fromPEMFile(path)
      case .bytes(let bytes): try NIOSSLCertificate.fromPEMBytes(bytes)
      }
    }
    guard !certificates.isEmpty else {
      throw CacheError(.invalidConfiguration, reason: "no certificate found", path: path)
    }
    return certificates
  }

  fileprivate func privateKey() throws(CacheError) -> NIOSSLPrivateKey {
    try read("the private key") {
      switch self {
      case .file(let path): try NIOSSLPrivateKey(file: path, format: .pem)
      case .bytes(let bytes): try NIOSSLPrivateKey(bytes: bytes, format: .pem)
      }
    }
  }

  private var path: String? {
    if case .file(let path) = self { path } else { nil }
  }

  private func read<Value>(_ what: String, _ load: () throws -> Value) throws(CacheError) -> Value {
    do {
      return try load()
    } catch {
      throw CacheError(.invalidConfiguration, reason: "cannot read \(what)", path: path, underlying: error)
    }
  }
}

extension HTTPClient.Configuration.Proxy {
  init(_ proxy: ProxySettings.Proxy) throws(CacheError) {
    let host = try HostName.ascii(proxy.host)
    switch (proxy.kind, proxy.user) {
    case (.socks5, _): self = .socksServer(host: host, port: proxy.port)
    case (.http, nil): self = .server(host: host, port: proxy.port)
    case (.http, let user?):
      self = .server(
        host: host, port: proxy.port, authorization: .basic(username: user, password: proxy.password ?? ""))
    case (.https, _):
      throw CacheError(.invalidConfiguration, reason: "TLS to a proxy is not supported: \(proxy)")
    }
  }
}
#endif
