public import CacheCore
public import Foundation
public import HTTPTypes

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

extension SessionDelegate {
  /// A final answer's head.
  public struct ReceivedResponse: Sendable {
    /// Whose answer it is.
    public var transfer: SessionDataTask
    /// Status and fields, as the downloader hands them out.
    public var head: HTTPResponse
  }

  /// What a hook thinks of an answer.
  public enum Verdict: Sendable, Hashable {
    /// Go on.
    case accept
    /// Stop: the body is not downloaded, and all who wait get `CacheError.Code.refused` with this reason.
    case refuse(String)
  }

  /// The next bytes of a body.
  public struct ReceivedData: Sendable {
    /// Whose body it is.
    public var transfer: SessionDataTask
    /// The bytes, never empty.
    public var data: Data
  }

  /// A server's wish that the client ask elsewhere.
  public struct Redirect: Sendable {
    /// Whose answer it is.
    public var transfer: SessionDataTask
    /// 301, 302, 303, 307 or 308.
    public var status: Int
    /// Where to; absolute.
    public var target: URL?
  }

  /// A server's wish for a credential.
  public struct Challenge: Sendable {
    /// Whose request it is about.
    public var transfer: SessionDataTask
    /// The server's name, or the proxy's.
    public var host: String
    /// Its port.
    public var port: Int
    /// What the credential is for, in the server's words.
    public var realm: String?
    /// One of Foundation's `NSURLAuthenticationMethod…`.
    public var method: String
    /// How many credentials the server has refused for this request.
    public var previousFailures: Int

    init(_ challenge: URLAuthenticationChallenge, of transfer: SessionDataTask) {
      let space = challenge.protectionSpace
      self.transfer = transfer
      (host, port, realm, method) = (space.host, space.port, space.realm, space.authenticationMethod)
      previousFailures = challenge.previousFailureCount
    }
  }

  /// A wish for a credential that is a whole connection's.
  public struct SessionChallenge: Sendable {
    /// The server's name.
    public var host: String
    /// Its port.
    public var port: Int
    /// One of Foundation's `NSURLAuthenticationMethod…`.
    public var method: String
    /// How many credentials have been refused for this connection.
    public var previousFailures: Int

    init(_ challenge: URLAuthenticationChallenge) {
      let space = challenge.protectionSpace
      (host, port, method) = (space.host, space.port, space.authenticationMethod)
      previousFailures = challenge.previousFailureCount
    }
  }

  /// The end of a transfer.
  public struct Completion: Sendable {
    /// Which one.
    public var transfer: SessionDataTask
    /// Why it failed, or `CacheError.cancelled`; nil when everything came.
    public var error: CacheError?
  }
}
