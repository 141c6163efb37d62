public import HTTPTypes

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A request for a resource: a URL, a method, header fields, an optional body, and options for this load.
///
/// ```swift
/// var request = ResourceRequest(url, headerFields: [.accept: "application/json"])
/// request.options.policy = .cacheFirst
/// let resource = try await manager.load(request)
/// ```
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

extension ResourceRequest {
  /// Whether the request is a GET without a body, the only kind that is cached and that views load.
  package var isPlainGet: Bool { method == .get && body == nil }
}

/// The identity of a request, as its caller has passed it. Requests with equal identities load the same response.
///
/// It compares the name in the cache with its partition, the method, the fields, and the stores of the options. An interceptor
/// has no effect on it, because it can change the request, each time in another way. Bodies cannot be compared: a GET with a body
/// differs from one without, and of other methods the body does not count.
package struct RequestIdentity: Hashable, Sendable {
  /// The choice of a store by the options of a request.
  private enum Store: Hashable {
    /// The manager's store, or one that adapts it.
    case inherited
    case disabled
    case replaced(ComponentID)

    init<Component>(_ override: Override<Component>?, id: (Component) -> ComponentID) {
      switch override {
      case nil, .adapted?: self = .inherited
      case .disabled?: self = .disabled
      case .use(let component)?: self = .replaced(id(component))
      }
    }
  }

  /// The partition, with the key or else the URL. A `CacheKey` compares bytes, and strings compare canonically.
  private let name: CacheKey
  private let method: HTTPRequest.Method
  private let isPlainGet: Bool
  private let headerFields: HTTPFields
  /// A response in another store is another response.
  private let memory, store: Store

  /// Creates the identity of a request.
  ///
  /// - Parameter key: The key that the manager gives a request without one, or `nil` if its name is the URL.
  package init(_ request: ResourceRequest, key: String? = nil) {
    let options = request.options
    let key = options.key ?? key
    let uri = key == nil ? request.url.absoluteString : ""
    name = CacheKey(resource: ResourceID.make(uri: uri, key: key, partition: options.partition))
    (method, isPlainGet, headerFields) = (request.method, request.isPlainGet, request.headerFields)
    (memory, store) = (Store(options.memory) { $0.id }, Store(options.store) { $0.id })
  }
}

/// The content that a load sends with its request.
///
/// It can be sent more than once: a redirect with 307 or 308 sends it again, and so does a retry.
///
/// ```swift
/// let request = ResourceRequest(url, method: .post, body: RequestBody(json, contentType: "application/json"))
/// ```
public struct RequestBody: Sendable {
  /// The media type. It becomes the `Content-Type` field if the request has none.
  public var contentType: String?
  private let open: @Sendable () async throws(CacheError) -> ResourceBody

  /// Creates a body from bytes in memory.
  ///
  /// - Parameters:
  ///   - data: The bytes.
  ///   - contentType: The media type, or `nil` to state none.
  public init(_ data: Data, contentType: String? = nil) {
    self.init(contentType: contentType) { () throws(CacheError) in ResourceBody(data) }
  }

  /// Creates a body from a closure that produces it for each request, for example from a file.
  ///
  /// - Parameters:
  ///   - contentType: The media type, or `nil` to state none.
  ///   - open: Creates the body, with the same bytes each time. An error ends the load. It runs on no actor. The
  ///     request retains it.
  public init(contentType: String? = nil, opening open: @escaping @Sendable () async throws(CacheError) -> ResourceBody) {
    self.contentType = contentType
    self.open = open
  }

  /// Returns a new body that has not been read.
  public func opened() async throws(CacheError) -> ResourceBody { try await open() }
}
