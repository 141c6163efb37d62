#if AsyncHTTP
public import AsyncHTTPClient
internal import CacheCore
internal import NIOCore
internal import NIOSSL

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
