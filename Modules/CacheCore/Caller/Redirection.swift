public import HTTPTypes

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A redirect of a load (RFC 9110 §15.4), and the request that follows it.
public struct Redirection: Sendable {
  /// The URL that redirects.
  public let from: URL
  /// The URL that the response leads to.
  public let to: URL
  /// The header of the response that redirects.
  public let response: HTTPResponse
  /// The number of the redirect in its load, counted from 1.
  public let number: Int
  /// The next request. Set it to change what is sent.
  ///
  /// The proposed request has no credentials, cookies or conditions if it goes to another origin. After a 303, and after a POST
  /// with a 301 or 302 response, it is a GET without content. A changed request is sent unmodified, including its credentials.
  public var request: HTTPRequest
  /// Whether the redirect is followed. If not, the load checks the redirect's status against the statuses that it accepts.
  public var isFollowed = true

  /// Creates a redirect, for tests of interceptors.
  public init(from: URL, to: URL, response: HTTPResponse, number: Int, request: HTTPRequest) {
    self.from = from
    self.to = to
    self.response = response
    self.number = number
    self.request = request
  }
}
