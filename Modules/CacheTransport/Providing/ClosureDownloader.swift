public import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A downloader that responds by a closure: with an image of a database or of a photo library, or with another engine's response.
///
/// ```swift
/// let photos = ClosureDownloader(contentType: "image/jpeg") { request in
///   try await library.jpeg(named: request.head.path ?? "")
/// }
/// configuration.schemeHandlers["photo"] = photos  // photo:… URLs take the same way as the network's
/// let options = RequestOptions { $0.downloader = .use(ClosureDownloader { _ in thumbnail }) }
/// ```
///
/// An error of the closure ends the load: a `CacheError` as it is, a `CancellationError` as `CacheError.cancelled`, another error
/// as `CacheError.Code.other` with that error in `underlying`. A cancelled load cancels the closure's task, and ends when the
/// closure does.
public struct ClosureDownloader: Downloader {
  /// Makes a whole response.
  public typealias Answer = @Sendable (DownloadRequest) async throws -> DownloadResponse
  /// Makes the bytes of a response.
  public typealias Bytes = @Sendable (DownloadRequest) async throws -> Data

  public let id: ComponentID
  private let answer: Answer
  private let lifetime: Duration?

  /// Creates a downloader of whole responses, whose bodies may stream: see `ResourceBody.init(length:onCancel:pulling:)`.
  ///
  /// - Parameters:
  ///   - name: equal for downloaders that respond alike, so that loads through them are coalesced. With `nil`, the downloader is
  ///     equal to no other.
  ///   - lifetime: the time for which a cache may use successful responses without a `Cache-Control` field, in whole seconds, or
  ///     `nil` if it must not store them.
  ///   - answer: called for each request, on the cooperative pool or on the load's executor. It must not block.
  public init(named name: String? = nil, freshFor lifetime: Duration? = nil, answering answer: @escaping Answer) {
    id = name.map { ComponentID(Self.self, parameters: "\(lifetime.map { "\($0)" } ?? "") named \($0)") } ?? .unique(Self.self)
    self.answer = answer
    self.lifetime = lifetime
  }

  /// Creates a downloader of bytes. The response to other methods than GET and HEAD is 405, without a call of the closure.
  ///
  /// - Parameters:
  ///   - name: equal for downloaders that respond alike, so that loads through them are coalesced. With `nil`, the downloader is
  ///     equal to no other.
  ///   - contentType: the media type of the bytes, or `nil` for no `Content-Type` field.
  ///   - lifetime: the time for which a cache may use the bytes, in whole seconds, or `nil` if it must not store them.
  ///   - bytes: called for each request. It must not block.
  public init(
    named name: String? = nil, contentType: String? = nil, freshFor lifetime: Duration? = nil, _ bytes: @escaping Bytes
  ) {
    self.init(named: name.map { "\($0) \(contentType ?? "")" }, freshFor: lifetime) { request in
      let method = request.head.method
      guard method == .get || method == .head else {
        return DownloadResponse(head: HTTPResponse(status: .methodNotAllowed), body: ResourceBody(Data()))
      }
      let data = try await bytes(request)
      var head = HTTPResponse(status: .ok, headerFields: [.contentLength: String(data.count)])
      if let contentType { head.headerFields[.contentType] = contentType }
      let body = method == .get ? data : Data()
      return DownloadResponse(head: head, body: ResourceBody(body)) {
        TransferMetrics(bytesOnWire: 0, bytesDecoded: Int64(body.count))
      }
    }
  }

  /// - Throws: what the closure does.
  @concurrent
  public func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    if Task.isCancelled { throw .cancelled }
    do {
      var response = try await answer(request)
      if Task.isCancelled {
        response.body.source.cancel()
        throw CacheError.cancelled
      }
      response.head.setFreshness(lifetime)
      return response
    } catch {
      throw CacheError(provider: error)
    }
  }
}
