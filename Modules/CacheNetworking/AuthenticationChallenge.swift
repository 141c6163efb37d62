public import CacheCore
public import Foundation

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// A server's or proxy's request for a credential.
///
/// ```swift
/// let downloader = SessionDownloader()
/// downloader.challengeHandler.delegate(on: keychain) { (keychain, challenge) in
///   await keychain.credential(for: challenge.host)  // nil makes the 401 the response
/// }
/// ```
public struct AuthenticationChallenge: Sendable {
  /// The URL of the request, or `nil` if the credential is for a whole connection: a client certificate, Negotiate or NTLM. Only
  /// Apple platforms have challenges for a connection.
  public var url: URL?
  /// The name of the server or the proxy.
  public var host: String
  /// The port of the server or the proxy.
  public var port: Int
  /// The realm that the server names, if it names one (RFC 9110 §11.5).
  public var realm: String?
  /// The authentication method, one of Foundation's `NSURLAuthenticationMethod…` constants.
  public var method: String
  /// The number of credentials that were already refused for this request or connection.
  public var previousFailures: Int

  /// Returns the credential for a challenge, or `nil` if there is none. An error ends the download.
  public typealias Handler = AsyncDelegate<AuthenticationChallenge, URLCredential?>

  /// Creates a challenge for a test of a handler.
  public init(url: URL?, host: String, port: Int, realm: String?, method: String, previousFailures: Int = 0) {
    self.url = url
    self.host = host
    self.port = port
    self.realm = realm
    self.method = method
    self.previousFailures = previousFailures
  }

  init(_ challenge: URLAuthenticationChallenge, url: URL?) {
    let space = challenge.protectionSpace
    self.init(
      url: url, host: space.host, port: space.port, realm: space.realm, method: space.authenticationMethod,
      previousFailures: challenge.previousFailureCount)
  }
}
