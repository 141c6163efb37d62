public import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Answers requests by a closure: a database, a system's own picture library, an engine of one's own.
///
/// ```swift
/// let photos = ClosureDownloader(contentType: "image/jpeg") { request in
///   try await library.jpeg(named: request.head.path ?? "")
/// }
/// configuration.schemeHandlers["photo"] = photos  // photo:… URLs now travel the same path as the network
/// ```
///
/// What the closure throws ends the load: a `CacheError` as it is, a `CancellationError` as `CacheError.cancelled`, anything else
/// as `CacheError.Code.other` with the error behind it. A cancelled load cancels the closure's task, and ends when the closure
/// does.
public struct ClosureDownloader: Downloader {
  /// Makes a whole answer.
  public typealias Answer = @Sendable (DownloadRequest) async throws -> DownloadResponse
  /// Makes the bytes of an answer.
  public typealias Bytes = @Sendable (DownloadRequest) async throws -> Data

  public let id: ComponentID
  private let answer: Answer
  private let caching: ProvidedCaching

  /// A provider of whole answers, whose body may stream: see `ResourceBody.init(length:onCancel:pulling:)`.
  ///
  /// - Parameters:
  ///   - name: says which providers answer alike, so that loads which use them may share one answer; nil: this one is like no
  ///     other.
  ///   - caching: whether a cache above may keep answers without a `Cache-Control` of their own.
  ///   - answer: called for each request, on the cooperative pool or where the load runs: it must not block.
  public init(named name: String? = nil, caching: ProvidedCaching = .never, answering answer: @escaping Answer) {
    id = name.map { ComponentID(Self.self, parameters: "\(caching.cacheControl) named \($0)") } ?? .unique(Self.self)
    self.answer = answer
    self.caching = caching
  }

  /// A provider of bytes. Other methods than GET and HEAD are answered 405 without asking the closure.
  ///
  /// - Parameters:
  ///   - name: says which providers answer alike, so that loads which use them may share one answer; nil: this one is like no
  ///     other.
  ///   - contentType: the bytes' media type; nil: not told.
  ///   - caching: whether a cache above may keep them.
  ///   - bytes: called for each request: it must not block.
  public init(
    named name: String? = nil, contentType: String? = nil, caching: ProvidedCaching = .never, _ bytes: @escaping Bytes
  ) {
    self.init(named: name.map { "\($0) \(contentType ?? "")" }, caching: caching) { request in
      let method = request.head.method
      guard method == .get || method == .head else {
        return DownloadResponse(head: HTTPResponse(status: .methodNotAllowed), body: ResourceBody(Data()))
      }
      let provided = DataDownloader(try await bytes(request), contentType: contentType, caching: caching)
      return try await provided.download(request)
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
      caching.apply(to: &response.head)
      return response
    } catch {
      throw CacheError(provider: error)
    }
  }
}
