public import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Answers every request with bytes that are at hand, so that they travel the same path as the network: decoded, observed and, if
/// wanted, cached.
///
/// ```swift
/// let options = RequestOptions { $0.downloader = .some(DataDownloader(thumbnail, contentType: "image/png")) }
/// ```
public struct DataDownloader: Downloader {
  public let id: ComponentID
  private let data: Data
  private let contentType: String?
  private let caching: ProvidedCaching

  /// A provider of the same bytes for every URL.
  ///
  /// - Parameters:
  ///   - data: the bytes.
  ///   - contentType: their media type (RFC 9110 §8.3); nil: not told.
  ///   - caching: whether a cache above may keep them.
  public init(_ data: Data, contentType: String? = nil, caching: ProvidedCaching = .never) {
    // Bytes are compared by nobody: two providers are alike when one is a copy of the other.
    id = .unique(Self.self)
    self.data = data
    self.contentType = contentType
    self.caching = caching
  }

  /// 200 to GET and HEAD, 405 to everything else.
  public func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    if Task.isCancelled { throw .cancelled }
    let method = request.head.method
    guard method == .get || method == .head else {
      return DownloadResponse(head: HTTPResponse(status: .methodNotAllowed), body: ResourceBody(Data()))
    }
    var head = HTTPResponse(status: .ok, headerFields: [.contentLength: String(data.count)])
    if let contentType { head.headerFields[.contentType] = contentType }
    caching.apply(to: &head)
    let count = method == .get ? Int64(data.count) : 0
    return DownloadResponse(head: head, body: ResourceBody(method == .get ? data : Data())) {
      TransferMetrics(bytesOnWire: 0, bytesDecoded: count)
    }
  }
}
