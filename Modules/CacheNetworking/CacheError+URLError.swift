public import CacheCore
public import Foundation

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

extension CacheError {
  /// What an error of `URLSession`'s means, in the words of this package; it is kept as ``underlying``.
  public init(urlError: URLError) {
    let detail = urlError.localizedDescription
    let (code, reason) =
      Self.restriction(urlError) ?? Self.meaning(of: urlError.code) ?? Self.meaning(ofUnknown: detail)
    self.init(code, reason: reason, underlying: urlError)
  }

  /// The same error, where the request went through a proxy: it is the proxy's name then that does not resolve, and the proxy
  /// that is not there.
  func through(_ proxy: ProxySettings.Proxy?) -> CacheError {
    guard let proxy, code == .connectionRefused || code == .hostNotFound else { return self }
    return CacheError(.proxyFailure, reason: "the proxy \(proxy) can't be reached: \(reason)", underlying: underlying)
  }

  /// The error that `URLSession` ended a task with.
  ///
  /// - Parameters:
  ///   - hasHead: whether the head had come: an unknown error after it is a body that broke off.
  ///   - received: body bytes that had come.
  ///   - expected: body bytes that were announced.
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

  static func truncated(received: Int64, expected: Int64?, underlying: (any Error)? = nil) -> CacheError {
    let reason =
      if let expected {
        "the body ended after \(received) of \(expected) bytes"
      } else {
        "the body broke off after \(received) bytes, before its end was told"
      }
    return CacheError(.truncatedBody, reason: reason, underlying: underlying)
  }

  private static func meaning(of code: URLError.Code) -> (Code, String)? {
    switch code {
    case .cancelled: (.cancelled, "cancelled")
    case .cannotFindHost, .dnsLookupFailed: (.hostNotFound, "the host name does not resolve")
    case .cannotConnectToHost: (.connectionRefused, "connection refused")
    case .networkConnectionLost: (.connectionLost, "the connection broke")
    case .timedOut: (.timedOut, "nothing came for too long")
    case .notConnectedToInternet, .dataNotAllowed, .internationalRoamingOff, .callIsActive: (.offline, "there is no network")
    case .badServerResponse: badServerResponse
    case .unsupportedURL: unsupportedURL
    case .badURL: (.invalidURL, "the URL can't be loaded")
    case .cannotParseResponse, .cannotDecodeRawData: (.malformedResponse, "the answer breaks the rules of HTTP")
    case .cannotDecodeContentData: (.damagedContentCoding, "the body's content coding is damaged")
    case .dataLengthExceedsMaximum: (.bodyTooLarge, "the body is larger than the platform takes")
    case .httpTooManyRedirects: (.tooManyRedirects, "redirected too often")
    case .userCancelledAuthentication, .userAuthenticationRequired: (.refused, "the server wants a credential")
    case .secureConnectionFailed: (.tlsFailure, "no secure connection could be made")
    case .serverCertificateHasBadDate: (.tlsFailure, "the server's certificate is out of date")
    case .serverCertificateUntrusted, .serverCertificateHasUnknownRoot: (.tlsFailure, "the server's certificate is not trusted")
    case .serverCertificateNotYetValid: (.tlsFailure, "the server's certificate is not valid yet")
    case .clientCertificateRejected: (.tlsFailure, "the server refused the client's certificate")
    case .clientCertificateRequired: (.tlsFailure, "the server wants a client's certificate")
    case .appTransportSecurityRequiresSecureConnection: (.tlsFailure, "the app's transport security allows https only")
    default: nil
    }
  }

  #if canImport(FoundationNetworking)
  /// Foundation compares a URL's host with libcurl's, and only one of them has the brackets of an IPv6 address. The request is
  /// refused before anything is sent (swift-corelibs-foundation #5496, corrected after Swift 6.3).
  private static func restriction(_ error: URLError) -> (Code, String)? {
    guard error.code == .badURL, error.failingURL?.host()?.contains(":") == true else { return nil }
    return (.unsupported, "URLSession on Linux cannot load IPv6 literal hosts; use a host name, or AsyncHTTPDownloader")
  }

  // Here these two codes are libcurl's "empty reply" and, since no other scheme gets as far as this, "not HTTP".
  private static var badServerResponse: (Code, String) { (.connectionLost, "the server closed without an answer") }
  private static var unsupportedURL: (Code, String) { (.malformedResponse, "what came is not HTTP") }
  #else
  /// There is a network, and this request may not use it.
  private static func restriction(_ error: URLError) -> (Code, String)? {
    switch error.networkUnavailableReason {
    case .cellular: (.networkRestricted, "there is only a mobile network, which this request may not use")
    case .expensive: (.networkRestricted, "there is only an expensive network, which this request may not use")
    case .constrained: (.networkRestricted, "there is only a network in low-data mode, which this request may not use")
    default: nil
    }
  }

  private static var badServerResponse: (Code, String) { (.malformedResponse, "the answer breaks the rules of HTTP") }
  private static var unsupportedURL: (Code, String) { (.unsupportedScheme, "the URL's scheme can't be loaded") }
  #endif

  /// On Linux most failures share one code (-1), and only libcurl's text tells them apart.
  private static func meaning(ofUnknown detail: String) -> (Code, String) {
    let text = detail.lowercased()
    func says(_ words: String...) -> Bool { words.contains(where: text.contains) }
    if says("resolve proxy", "connect tunnel", "proxy connect", "socks") { return (.proxyFailure, "the proxy: \(detail)") }
    if says("failed to connect", "couldn't connect") { return (.connectionRefused, "no connection could be made") }
    if says("reset by peer", "recv failure", "send failure", "broken pipe") { return (.connectionLost, "the connection broke") }
    if says("transfer closed", "end of response") { return (.truncatedBody, "the body broke off") }
    // First: libcurl speaks of a "chunked-encoding" too.
    if says("chunk", "content-length") { return (.malformedResponse, "the body's framing breaks the rules of HTTP") }
    if says("encoding") { return (.damagedContentCoding, "the body's content coding is damaged or unknown") }
    if says("ssl", "tls", "certificate") { return (.tlsFailure, "no secure connection could be made: \(detail)") }
    if says("header") { return (.malformedResponse, "the answer has header fields that can't be read") }
    return (.other, detail)
  }
}
