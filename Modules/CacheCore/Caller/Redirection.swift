public import HTTPTypes

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A redirect that a load has met (RFC 9110 §15.4), and the request that follows it.
public struct Redirection: Sendable {
  /// The URL that redirects.
  public let from: URL
  /// The URL that the response leads to.
  public let to: URL
  /// The head of the response that redirects.
  public let response: HTTPResponse
  /// The number of the redirect in its load, counted from 1.
  public let number: Int
  /// The request that is sent next. The proposal has no credentials, cookies and conditions if it goes to another origin. After a
  /// 303, and after a POST that met a 301 or 302, it is a GET without content. A changed request is sent as it is, also its
  /// credentials.
  public var request: HTTPRequest
  /// Whether the redirect is followed. If not, its response is judged by the statuses that the load accepts.
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
