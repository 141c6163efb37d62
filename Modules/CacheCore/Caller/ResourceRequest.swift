public import HTTPTypes

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A request for a resource: a URL, a method, header fields, an optional body, and options for this load.
///
/// Only a GET without a body can be served from the cache and stored in it. Every other request goes to the network and is not
/// shared with other loads.
public struct ResourceRequest: Sendable {
  /// The URL of the resource.
  public var url: URL
  /// The method, GET by default.
  public var method: HTTPRequest.Method
  /// The header fields to send.
  public var headerFields: HTTPFields
  /// The content to send.
  public var body: RequestBody?
  /// The settings of this load that differ from the manager's.
  public var options: RequestOptions

  /// Creates a request for a URL.
  public init(
    _ url: URL, method: HTTPRequest.Method = .get, headerFields: HTTPFields = [:], body: RequestBody? = nil,
    options: RequestOptions = RequestOptions()
  ) {
    self.url = url
    self.method = method
    self.headerFields = headerFields
    self.body = body
    self.options = options
  }

  /// Creates a request for a URL given as text. Characters that a URL cannot have are percent-encoded, and existing escapes stay:
  /// `?f[]=a%20b` becomes `?f%5B%5D=a%20b` (RFC 3986 §2.4). Spaces at both ends are dropped.
  ///
  /// - Throws: ``CacheError/Code/invalidURL`` if the text is not an absolute URL.
  public init(
    _ text: String, method: HTTPRequest.Method = .get, headerFields: HTTPFields = [:], body: RequestBody? = nil,
    options: RequestOptions = RequestOptions()
  ) throws(CacheError) {
    guard let url = URL(encoding: text) else {
      throw (HostName.refusal(ofURL: text) ?? CacheError(.invalidURL, reason: "not a URL")).about(URL.address(ofInvalid: text))
    }
    _ = try HTTPRequest(resource: url, method: method)
    self.init(url, method: method, headerFields: headerFields, body: body, options: options)
  }
}
