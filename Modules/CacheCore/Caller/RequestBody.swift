#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

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
