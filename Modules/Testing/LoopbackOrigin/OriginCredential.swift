#if Origin
#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The credential of a protected path: HTTP Basic (RFC 7617).
public struct OriginCredential: Sendable, Hashable {
  /// The user name, without a colon.
  public var user: String
  /// The password.
  public var password: String
  /// The realm in the challenge.
  public var realm: String

  /// Creates a credential. Without it, the response is a 401 with `WWW-Authenticate: Basic`.
  public init(user: String, password: String, realm: String = "origin") {
    (self.user, self.password, self.realm) = (user, password, realm)
  }

  /// The value of `WWW-Authenticate` or `Proxy-Authenticate`.
  var challenge: String { "Basic realm=\"\(realm)\", charset=\"UTF-8\"" }

  /// Returns whether the value of an `Authorization` or `Proxy-Authorization` field is this credential.
  func accepts(_ authorization: String?) -> Bool {
    guard let authorization else { return false }
    let parts = authorization.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: true)
    return parts.count == 2 && parts[0].lowercased() == "basic"
      && parts[1] == Data("\(user):\(password)".utf8).base64EncodedString()
  }
}
#endif
