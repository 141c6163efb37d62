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

  /// Creates a request for a URL given as text.
  ///
  /// - Throws: ``CacheError/Code/invalidURL`` if the text is not an absolute URL.
  public init(
    _ text: String, method: HTTPRequest.Method = .get, headerFields: HTTPFields = [:], body: RequestBody? = nil,
    options: RequestOptions = RequestOptions()
  ) throws(CacheError) {
    guard let url = URL(string: text) else {
      throw (HostName.refusal(ofURL: text) ?? CacheError(.invalidURL, reason: "not a URL")).about(text)
    }
    _ = try HTTPRequest(resource: url, method: method)
    self.init(url, method: method, headerFields: headerFields, body: body, options: options)
  }
}
