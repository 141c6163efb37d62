public import HTTPTypes

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A redirect that a load has met (RFC 9110 §15.4), and what it would send next.
public struct Redirection: Sendable {
  /// Who redirects.
  public var from: URL
  /// Where to.
  public var to: URL
  /// The head of the answer that redirects: from the network, or from the cache.
  public var response: HTTPResponse
  /// Counted from 1: which redirect of the load it is.
  public var number: Int
  /// What would be sent next. At another origin it is without credentials, cookies and conditions; after a 303, and after a POST
  /// that met a 301 or 302, it is a GET without content.
  public var request: HTTPRequest

  /// A redirect of its parts: for tests of handlers.
  public init(from: URL, to: URL, response: HTTPResponse, number: Int, request: HTTPRequest) {
    self.from = from
    self.to = to
    self.response = response
    self.number = number
    self.request = request
  }
}

/// What is to become of a redirect.
public enum RedirectDecision: Sendable {
  /// It is followed as proposed.
  case follow
  /// This request is sent instead, as it is: what it carries to another origin is its maker's intention. Only to http and https.
  case rewrite(HTTPRequest)
  /// It is not followed: the 3xx is the answer, judged by the statuses that the load accepts.
  case stop
  /// The load ends with ``CacheError/Code/redirectRefused`` and this reason.
  case refuse(String)
}
