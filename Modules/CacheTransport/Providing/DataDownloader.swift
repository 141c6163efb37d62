public import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A downloader that responds to every request with the same bytes. They take the same way as bytes from the network: they are
/// decoded, observed and, if wanted, cached.
///
/// ```swift
/// let options = RequestOptions { $0.downloader = .use(DataDownloader(thumbnail, contentType: "image/png")) }
/// ```
public struct DataDownloader: Downloader {
  public let id: ComponentID
  private let data: Data
  private let contentType: String?
  private let lifetime: Duration?

  /// Creates a downloader of these bytes.
  ///
  /// - Parameters:
  ///   - data: the bytes.
  ///   - contentType: their media type (RFC 9110 §8.3), or `nil` for no `Content-Type` field.
  ///   - lifetime: the time for which a cache may use the bytes, in whole seconds, or `nil` if it must not store them.
  public init(_ data: Data, contentType: String? = nil, freshFor lifetime: Duration? = nil) {
    // The bytes are not compared: only copies have equal identities.
    id = .unique(Self.self)
    self.data = data
    self.contentType = contentType
    self.lifetime = lifetime
  }

  /// Responds with 200 to GET and HEAD, and with 405 to other methods.
  public func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    if Task.isCancelled { throw .cancelled }
    let method = request.head.method
    guard method == .get || method == .head else {
      return DownloadResponse(head: HTTPResponse(status: .methodNotAllowed), body: ResourceBody(Data()))
    }
    var head = HTTPResponse(status: .ok, headerFields: [.contentLength: String(data.count)])
    if let contentType { head.headerFields[.contentType] = contentType }
    head.setFreshness(lifetime)
    let count = method == .get ? Int64(data.count) : 0
    return DownloadResponse(head: head, body: ResourceBody(method == .get ? data : Data())) {
      TransferMetrics(bytesOnWire: 0, bytesDecoded: count)
    }
  }
}
