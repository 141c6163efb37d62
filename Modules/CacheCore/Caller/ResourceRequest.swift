public import HTTPTypes

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// What a caller wants: a URL, header fields, perhaps something to send, and options for this one load.
///
/// Only a GET without a body is answered from what is stored, and stored. Every other request goes to the network for itself
/// alone.
public struct ResourceRequest: Sendable {
  /// The resource.
  public var url: URL
  /// GET, unless it is set otherwise.
  public var method: HTTPRequest.Method
  /// Fields that are sent along.
  public var headerFields: HTTPFields
  /// What is sent with it.
  public var body: RequestBody?
  /// What this load wants otherwise than its manager.
  public var options: RequestOptions

  /// A request for a URL.
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

  /// A request for a URL in text.
  ///
  /// - Throws: ``CacheError/Code/invalidURL`` when the text is no absolute URL.
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
