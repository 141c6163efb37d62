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
  /// What an error of async-http-client's, or of SwiftNIO's below it, means; it is kept as `underlying`.
  ///
  /// - Parameters:
  ///   - error: as it was thrown.
  ///   - progress: how far the answer had come: after its head, a connection that breaks has cut the body short.
  init(clientError error: any Error, after progress: TransferState.Progress = TransferState.Progress()) {
    if let error = error as? CacheError {
      self = error
      return
    }
    let meaning = Self.meaning(of: error)
    let cutsBody = progress.hasHead && [.connectionLost, .truncatedBody].contains(meaning.code)
    guard !cutsBody else {
      self = .truncated(received: progress.received, expected: progress.expected, underlying: error)
      return
    }
    // Before the head there is no body that could be too short.
    let code = meaning.code == .truncatedBody ? .connectionLost : meaning.code
    self.init(code, reason: meaning.reason, errno: (error as? IOError)?.errnoCode, underlying: error)
  }

  static func truncated(received: Int64, expected: Int64?, underlying: (any Error)? = nil) -> CacheError {
    let reason =
      if let expected {
        "the body ended after \(received) of \(expected) bytes"
      } else {
        "the body broke off after \(received) bytes, before its end was told"
      }
    return CacheError(.truncatedBody, reason: reason, underlying: underlying)
  }

  static func overlong(received: Int64, expected: Int64) -> CacheError {
    CacheError(.malformedResponse, reason: "the body has more than the \(expected) bytes that were announced")
  }

  /// The caller's own client goes to other places than it was asked for.
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
    case let error as NIOSSLError: (.tlsFailure, "no secure connection could be made: \(error)")
    case let error as BoringSSLError: (.tlsFailure, "no secure connection could be made: \(error)")
    case let error as NIOSSLExtraError: (.tlsFailure, "no secure connection could be made: \(error)")
    default: meaning(ofUnknown: error)
    }
  }

  private static func meaning(of error: HTTPClientError) -> (code: Code, reason: String) {
    switch error {
    case .cancelled: (.cancelled, "cancelled")
    case .alreadyShutdown: (.closed, "the client has been shut down")
    case .remoteConnectionClosed: (.connectionLost, "the server closed the connection")
    case .connectTimeout: (.timedOut, "connecting took too long")
    case .tlsHandshakeTimeout: (.timedOut, "the TLS handshake took too long")
    case .getConnectionFromPoolTimeout: (.timedOut, "no connection came free in time")
    case .readTimeout, .writeTimeout: (.timedOut, "nothing came for too long")
    case .deadlineExceeded: (.timedOut, "it took too long")
    case .socksHandshakeTimeout, .httpProxyHandshakeTimeout: (.proxyFailure, "the proxy did not answer in time")
    case .invalidProxyResponse: (.proxyFailure, "the proxy refused, or what it says is not HTTP")
    case .proxyAuthenticationRequired: (.proxyFailure, "the proxy wants a credential")
    case .invalidURL, .emptyHost, .emptyScheme, .missingSocketPath: (.invalidURL, "the URL can't be loaded")
    case .redirectLimitReached, .redirectCycleDetected: (.tooManyRedirects, "redirected too often")
    case .bodyLengthMismatch: (.misuse, "the request's body is not as long as was announced")
    case .requestStreamCancelled: (.connectionLost, "the server did not want the whole request")
    case .traceRequestWithBody: (.invalidConfiguration, "a TRACE request has no body")
    default: (.other, error.shortDescription)
    }
  }

  private static func meaning(of error: NIOConnectionError) -> (code: Code, reason: String) {
    guard let failure = error.connectionErrors.first?.error else {
      return (.hostNotFound, "the host name does not resolve")
    }
    // Several addresses may fail for several reasons; that one is told which says most about the host.
    let meanings = error.connectionErrors.map { meaning(of: $0.error) }
    return meanings.first { $0.code == .connectionRefused } ?? meaning(of: failure)
  }

  private static func meaning(ofErrno errno: CInt) -> (code: Code, reason: String) {
    switch errno {
    case ECONNREFUSED: (.connectionRefused, "connection refused")
    case ECONNRESET, EPIPE, ECONNABORTED, ENOTCONN: (.connectionLost, "the connection broke")
    case ETIMEDOUT: (.timedOut, "the connection timed out")
    case ENETUNREACH, ENETDOWN: (.offline, "there is no network to that address")
    case EHOSTUNREACH, EHOSTDOWN: (.connectionRefused, "the host can't be reached")
    case EADDRNOTAVAIL: (.offline, "there is no address to connect from")
    case EMFILE, ENFILE: (.other, "too many files are open")
    default: (.other, String(cString: strerror(errno)))
    }
  }

  private static func meaning(of error: ChannelError) -> (code: Code, reason: String) {
    switch error {
    case .connectTimeout: (.timedOut, "connecting took too long")
    case .eof, .alreadyClosed, .ioOnClosedChannel, .inputClosed, .outputClosed:
      (.connectionLost, "the server closed the connection")
    default: (.other, "\(error)")
    }
  }

  private static func meaning(of error: HTTPParserError) -> (code: Code, reason: String) {
    switch error {
    case .invalidEOFState, .closedConnection: (.truncatedBody, "the server closed in the middle of the answer")
    case .headerOverflow: (.malformedResponse, "the answer's header section is too large")
    default: (.malformedResponse, "what came is not HTTP: \(error)")
    }
  }

  /// Types that are not to be had here, because their packages are async-http-client's own affair: SOCKS and HTTP/2.
  private static func meaning(ofUnknown error: any Error) -> (code: Code, reason: String) {
    let name = String(reflecting: type(of: error))
    if name.hasPrefix("NIOSOCKS.") { return (.proxyFailure, "the proxy refused: \(error)") }
    guard name.hasPrefix("NIOHTTP2.") else { return (.other, "\(error)") }
    if ["StreamClosed", "IOOnClosedConnection", "StreamError"].contains(where: name.hasSuffix) {
      return (.connectionLost, "the server gave the request up: \(error)")
    }
    // More or fewer bytes than announced: what came is counted here, and told in numbers.
    if name.contains("ContentLength") { return (.truncatedBody, "the body is not as long as was announced") }
    return (.malformedResponse, "what came is not HTTP/2: \(error)")
  }
}
#endif
