#if AsyncHTTP
internal import AsyncHTTPClient
internal import CacheCore
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import NIOSSL

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Musl)
internal import Musl
#elseif canImport(Glibc)
internal import Glibc
#endif

extension CacheError {
  /// Creates the error of this package that an error of async-http-client or SwiftNIO maps to. The original error is stored in
  /// `underlying`.
  ///
  /// - Parameters:
  ///   - error: The error that was thrown.
  ///   - progress: The received part of the response. A connection lost after the head means a truncated body.
  init(clientError error: any Error, after progress: TransferState.Progress = TransferState.Progress()) {
    if let error = error as? CacheError {
      self = error
      return
    }
    let error = (error as? LostReusedConnection)?.cause ?? error
    let meaning = Self.meaning(of: error)
    let cutsBody = progress.hasHead && [.connectionLost, .truncatedBody].contains(meaning.code)
    guard !cutsBody else {
      self = .truncated(received: progress.received, expected: progress.expected, underlying: error)
      return
    }
    // Before the head there is no body to truncate.
    let code = meaning.code == .truncatedBody ? .connectionLost : meaning.code
    self.init(code, reason: meaning.reason, errno: (error as? IOError)?.errnoCode, underlying: error)
  }

  /// The error for a caller's client that follows redirects.
  static var followsRedirects: CacheError {
    CacheError(
      .invalidConfiguration,
      reason: "the HTTPClient follows redirects: set its configuration's redirectConfiguration to .disallow")
  }

  private static func meaning(of error: any Error) -> (code: Code, reason: String) {
    switch error {
    case let error as HTTPClientError: meaning(of: error)
    case let error as NIOConnectionError: meaning(of: error)
    case let error as IOError: meaning(ofErrno: error.errnoCode)
    case let error as ChannelError: meaning(of: error)
    case let error as HTTPParserError: meaning(of: error)
    case is SocketAddressError.UnknownHost: (.hostNotFound, "the host name does not resolve")
    case is CancellationError: (.cancelled, "cancelled")
    case let error as NIOSSLError: (.tlsFailure, "cannot establish a TLS connection: \(error)")
    case let error as BoringSSLError: (.tlsFailure, "cannot establish a TLS connection: \(error)")
    case let error as NIOSSLExtraError: (.tlsFailure, "cannot establish a TLS connection: \(error)")
    default: meaning(ofUnknown: error)
    }
  }

  private static func meaning(of error: HTTPClientError) -> (code: Code, reason: String) {
    switch error {
    case .cancelled: (.cancelled, "cancelled")
    case .alreadyShutdown: (.closed, "the client has been shut down")
    case .remoteConnectionClosed: (.connectionLost, "the server closed the connection")
    case .connectTimeout: (.timedOut, "the connection attempt timed out")
    case .tlsHandshakeTimeout: (.timedOut, "the TLS handshake timed out")
    case .getConnectionFromPoolTimeout: (.timedOut, "no connection became available in time")
    case .readTimeout, .writeTimeout: (.timedOut, "no data arrived before the time-out")
    case .deadlineExceeded: (.timedOut, "the deadline was exceeded")
    case .socksHandshakeTimeout, .httpProxyHandshakeTimeout: (.proxyFailure, "the proxy did not respond in time")
    case .invalidProxyResponse: (.proxyFailure, "the proxy refused the request or did not respond in HTTP")
    case .proxyAuthenticationRequired: (.proxyFailure, "the proxy requires a credential")
    case .invalidURL, .emptyHost, .emptyScheme, .missingSocketPath: (.invalidURL, "the URL cannot be loaded")
    case .redirectLimitReached, .redirectCycleDetected: (.tooManyRedirects, "too many redirects")
    case .bodyLengthMismatch: (.misuse, "the length of the request body differs from the announced length")
    case .requestStreamCancelled: (.connectionLost, "the server rejected the rest of the request body")
    case .traceRequestWithBody: (.invalidConfiguration, "a TRACE request cannot have a body")
    default: (.other, error.shortDescription)
    }
  }

  private static func meaning(of error: NIOConnectionError) -> (code: Code, reason: String) {
    guard let failure = error.connectionErrors.first?.error else {
      return (.hostNotFound, "the host name does not resolve")
    }
    // Several addresses may fail for different reasons. A refused connection says most about the host.
    let meanings = error.connectionErrors.map { meaning(of: $0.error) }
    return meanings.first { $0.code == .connectionRefused } ?? meaning(of: failure)
  }

  private static func meaning(ofErrno errno: CInt) -> (code: Code, reason: String) {
    switch errno {
    case ECONNREFUSED: (.connectionRefused, "connection refused")
    case ECONNRESET, EPIPE, ECONNABORTED, ENOTCONN: (.connectionLost, "connection lost")
    case ETIMEDOUT: (.timedOut, "the connection timed out")
    case ENETUNREACH, ENETDOWN: (.offline, "the network is unreachable")
    case EHOSTUNREACH, EHOSTDOWN: (.connectionRefused, "the host is unreachable")
    case EADDRNOTAVAIL: (.offline, "no local address is available")
    case EMFILE, ENFILE: (.other, "too many open files")
    default: (.other, String(cString: strerror(errno)))
    }
  }

  private static func meaning(of error: ChannelError) -> (code: Code, reason: String) {
    switch error {
    case .connectTimeout: (.timedOut, "the connection attempt timed out")
    case .eof, .alreadyClosed, .ioOnClosedChannel, .inputClosed, .outputClosed:
      (.connectionLost, "the server closed the connection")
    default: (.other, "\(error)")
    }
  }

  private static func meaning(of error: HTTPParserError) -> (code: Code, reason: String) {
    switch error {
    case .invalidEOFState, .closedConnection: (.truncatedBody, "the server closed the connection before the end of the response")
    case .headerOverflow: (.malformedResponse, "the header section of the response is too large")
    default: (.malformedResponse, "the response is not HTTP: \(error)")
    }
  }

  /// Maps errors by type name. Their types are private dependencies of async-http-client: SOCKS and HTTP/2.
  private static func meaning(ofUnknown error: any Error) -> (code: Code, reason: String) {
    let name = String(reflecting: type(of: error))
    if name.hasPrefix("NIOSOCKS.") { return (.proxyFailure, "the proxy refused the request: \(error)") }
    guard name.hasPrefix("NIOHTTP2.") else { return (.other, "\(error)") }
    if ["StreamClosed", "IOOnClosedConnection", "StreamError"].contains(where: name.hasSuffix) {
      return (.connectionLost, "the server aborted the request: \(error)")
    }
    // A body of the wrong length. The bytes are counted here, so that the error has numbers.
    if name.contains("ContentLength") { return (.truncatedBody, "the length of the body differs from the announced length") }
    return (.malformedResponse, "the response is not HTTP/2: \(error)")
  }
}

/// The loss of a connection that had served an earlier request, before a byte of the response arrived.
///
/// A server may close an idle connection at any time, and a client finds out when it uses the connection. Such a request can be
/// sent again (RFC 9110 §9.2.2, RFC 9112 §9.3.1).
struct LostReusedConnection: Error {
  /// The error without this information.
  var cause: any Error

  /// Adds a handler that reports such a loss to an HTTP/1.1 connection. Call it on the connection's event loop.
  static func reportLosses(of channel: any Channel) throws {
    let pipeline = channel.pipeline.syncOperations
    try pipeline.addHandler(Handler(), position: .after(pipeline.handler(type: HTTPRequestEncoder.self)))
  }

  /// The handler is below the parser, so it notices the first byte of a head.
  private final class Handler: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = HTTPClientRequestPart
    typealias OutboundOut = HTTPClientRequestPart

    private var hasSentRequest = false
    private var isReused = false
    /// Whether a request was written, and nothing has arrived since.
    private var isAwaiting = false

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
      if case .head = unwrapOutboundIn(data) {
        isReused = hasSentRequest
        hasSentRequest = true
        isAwaiting = true
      }
      context.write(data, promise: promise)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      isAwaiting = false
      context.fireChannelRead(data)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
      guard isReused, isAwaiting, CacheError(clientError: error).code == .connectionLost else {
        return context.fireErrorCaught(error)
      }
      isAwaiting = false
      context.fireErrorCaught(LostReusedConnection(cause: error))
    }

    func channelInactive(context: ChannelHandlerContext) {
      if isReused, isAwaiting {
        isAwaiting = false
        context.fireErrorCaught(LostReusedConnection(cause: HTTPClientError.remoteConnectionClosed))
      }
      context.fireChannelInactive()
    }
  }
}
#endif
