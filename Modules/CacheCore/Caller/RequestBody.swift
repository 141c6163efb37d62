#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// What a load sends with its request. It can be had again: a redirect with 307 or 308 sends it once more, and so does a request
/// that is repeated.
///
/// ```swift
/// let request = ResourceRequest(url, method: .post, body: RequestBody(json, contentType: "application/json"))
/// ```
public struct RequestBody: Sendable {
  /// The media type, which becomes `Content-Type` where the request states none.
  public var contentType: String?
  private let open: @Sendable () async throws(CacheError) -> ResourceBody

  /// Bytes that are at hand.
  ///
  /// - Parameters:
  ///   - data: the bytes.
  ///   - contentType: the media type; nil: none is stated.
  public init(_ data: Data, contentType: String? = nil) {
    self.init(contentType: contentType) { () throws(CacheError) in ResourceBody(data) }
  }

  /// A body that is made anew each time that it is sent: from a file, or from whatever can produce it again.
  ///
  /// - Parameters:
  ///   - contentType: the media type; nil: none is stated.
  ///   - open: makes the body, of the same bytes each time. What it throws ends the load. Called on no actor.
  public init(contentType: String? = nil, opening open: @escaping @Sendable () async throws(CacheError) -> ResourceBody) {
    self.contentType = contentType
    self.open = open
  }

  /// A body that nobody has read from yet.
  public func opened() async throws(CacheError) -> ResourceBody { try await open() }
}
