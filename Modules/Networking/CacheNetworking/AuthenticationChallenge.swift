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

/// The hosts whose TLS certificates are not verified. The comparison needs no platform, so it is tested everywhere.
struct TrustedHosts: Sendable {
  private let names: Set<String>

  /// - Parameter hosts: Names or addresses. One with a port is trusted at this port only.
  init(_ hosts: Set<String>) {
    names = Set(
      hosts.compactMap { text in
        guard let (host, port) = HostPort.split(text) else { return nil }
        let name = Self.comparable(host)
        return name.isEmpty ? nil : port.map { "\(name)|\($0)" } ?? name
      })
  }

  /// Returns whether the certificate of a server is not verified.
  func contains(host: String, port: Int) -> Bool {
    guard !names.isEmpty, let (host, _) = HostPort.split(host) else { return false }
    let name = Self.comparable(host)
    return names.contains(name) || names.contains("\(name)|\(port)")
  }

  /// Returns a name in lower case and in ASCII, without the dot of an absolute name, or the usual form of an address.
  private static func comparable(_ host: String) -> String {
    if let address = IPAddress(host) { return address.description }
    let name = HostName.comparable(host)
    return name.hasSuffix(".") ? String(name.dropLast()) : name
  }
}
