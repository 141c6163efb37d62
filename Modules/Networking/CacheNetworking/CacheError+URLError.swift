public import CacheCore
public import Foundation

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

extension CacheError {
  /// Creates the error of this package that a `URLSession` error maps to. The original error is stored in `underlying`.
  public init(urlError: URLError) {
    let detail = urlError.localizedDescription
    let (code, reason) =
      Self.restriction(urlError) ?? Self.meaning(of: urlError.code) ?? Self.meaning(ofUnknown: detail)
    self.init(code, reason: reason, underlying: urlError)
  }

  /// Returns the error for a request that was sent through a proxy. A host name that does not resolve, or a refused connection,
  /// is then the proxy's.
  func through(_ proxy: ProxySettings.Proxy?) -> CacheError {
    guard let proxy, code == .connectionRefused || code == .hostNotFound else { return self }
    return CacheError(.proxyFailure, reason: "cannot reach the proxy \(proxy): \(reason)", underlying: underlying)
  }

  /// Creates the error for a task that `URLSession` ended with an error.
  ///
  /// - Parameters:
  ///   - hasHead: Whether the head was received. An unknown error after it means that the body was truncated.
  ///   - received: The number of body bytes that were received.
  ///   - expected: The number of body bytes that the head announced, or `nil` if it announced none.
  init(completion error: any Error, hasHead: Bool, received: Int64, expected: Int64?) {
    guard let urlError = error as? URLError else {
      self.init(.other, reason: "\(error)", underlying: error)
      return
    }
    self.init(urlError: urlError)
    if hasHead, code == .other {
      self = .truncated(received: received, expected: expected, underlying: urlError)
    } else if code == .truncatedBody {
      self = .truncated(received: received, expected: expected, underlying: urlError)
    }
  }

  private static func meaning(of code: URLError.Code) -> (Code, String)? {
    switch code {
    case .cancelled: (.cancelled, "cancelled")
    case .cannotFindHost, .dnsLookupFailed: (.hostNotFound, "the host name does not resolve")
    case .cannotConnectToHost: (.connectionRefused, "connection refused")
    case .networkConnectionLost: (.connectionLost, "connection lost")
    case .timedOut: (.timedOut, "no data arrived before the time-out")
    case .notConnectedToInternet, .dataNotAllowed, .internationalRoamingOff, .callIsActive: (.offline, "no network is available")
    case .badServerResponse: badServerResponse
    case .unsupportedURL: unsupportedURL
    case .badURL: (.invalidURL, "the URL cannot be loaded")
    case .cannotParseResponse, .cannotDecodeRawData: (.malformedResponse, "the response violates HTTP")
    case .cannotDecodeContentData: (.damagedContentCoding, "the body's content coding is damaged")
    case .dataLengthExceedsMaximum: (.bodyTooLarge, "the body exceeds the platform's size limit")
    case .httpTooManyRedirects: (.tooManyRedirects, "too many redirects")
    case .userCancelledAuthentication, .userAuthenticationRequired: (.refused, "the server requires a credential")
    case .secureConnectionFailed: (.tlsFailure, "cannot establish a TLS connection")
    case .serverCertificateHasBadDate: (.tlsFailure, "the server's certificate has expired or is not valid yet")
    case .serverCertificateUntrusted, .serverCertificateHasUnknownRoot: (.tlsFailure, "the server's certificate is not trusted")
    case .serverCertificateNotYetValid: (.tlsFailure, "the server's certificate is not valid yet")
    case .clientCertificateRejected: (.tlsFailure, "the server rejected the client certificate")
    case .clientCertificateRequired: (.tlsFailure, "the server requires a client certificate")
    case .appTransportSecurityRequiresSecureConnection: (.tlsFailure, "App Transport Security requires https")
    default: nil
    }
  }

  #if canImport(FoundationNetworking)
  /// Foundation compares the URL's host with libcurl's, but only one of them has the brackets of an IPv6 address. The request is
  /// refused before anything is sent (swift-corelibs-foundation #5496, fixed after Swift 6.3).
  private static func restriction(_ error: URLError) -> (Code, String)? {
    guard error.code == .badURL, error.failingURL?.host()?.contains(":") == true else { return nil }
    return (.unsupported, "URLSession on Linux cannot load IPv6 literal hosts; use a host name, or AsyncHTTPDownloader")
  }

  // On Linux these two codes are libcurl's "empty reply" and "not HTTP". No other scheme gets this far.
  private static var badServerResponse: (Code, String) { (.connectionLost, "the server sent no response") }
  private static var unsupportedURL: (Code, String) { (.malformedResponse, "the response is not HTTP") }
  #else
  /// Returns the reason if a network is available but this request may not use it.
  private static func restriction(_ error: URLError) -> (Code, String)? {
    switch error.networkUnavailableReason {
    case .cellular: (.networkRestricted, "only a cellular network is available, which this request may not use")
    case .expensive: (.networkRestricted, "only an expensive network is available, which this request may not use")
    case .constrained: (.networkRestricted, "only a network in low-data mode is available, which this request may not use")
    default: nil
    }
  }

  private static var badServerResponse: (Code, String) { (.malformedResponse, "the response violates HTTP") }
  private static var unsupportedURL: (Code, String) { (.unsupportedScheme, "the URL scheme is not supported") }
  #endif

  /// Maps the text of an unknown error. On Linux most failures share one code (-1), and only libcurl's text tells them apart.
  private static func meaning(ofUnknown detail: String) -> (Code, String) {
    let text = detail.lowercased()
    func says(_ words: String...) -> Bool { words.contains(where: text.contains) }
    if says("resolve proxy", "connect tunnel", "proxy connect", "socks") { return (.proxyFailure, "the proxy failed: \(detail)") }
    if says("failed to connect", "couldn't connect") { return (.connectionRefused, "cannot connect") }
    if says("reset by peer", "recv failure", "send failure", "broken pipe") { return (.connectionLost, "connection lost") }
    if says("transfer closed", "end of response") { return (.truncatedBody, "the body was cut off") }
    // Checked before "encoding", because libcurl also writes "chunked-encoding".
    if says("chunk", "content-length") { return (.malformedResponse, "the body's framing violates HTTP") }
    if says("encoding") { return (.damagedContentCoding, "the body's content coding is damaged or unknown") }
    if says("ssl", "tls", "certificate") { return (.tlsFailure, "cannot establish a TLS connection: \(detail)") }
    if says("header") { return (.malformedResponse, "the response has invalid header fields") }
    return (.other, detail)
  }
}
