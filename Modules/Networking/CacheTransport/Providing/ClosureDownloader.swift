public import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A downloader that responds with a closure, for example with an image from a database or a photo library.
///
/// ```swift
/// let photos = ClosureDownloader(contentType: "image/jpeg") { request in
///   try await library.jpeg(named: request.head.path ?? "")
/// }
/// configuration.schemeHandlers["photo"] = photos  // photo: URLs use the same path as the network's
/// let options = RequestOptions { $0.downloader = .use(ClosureDownloader { _ in bytes }) }
/// ```
///
/// An error of the closure ends the load. A `CacheError` is passed on, a `CancellationError` becomes `CacheError.cancelled`, and
/// any other error is the `underlying` error of `CacheError.Code.other`. Cancelling the load cancels the closure's task. The load
/// ends when the closure does.
public struct ClosureDownloader: Downloader {
  /// A closure that creates a whole response.
  public typealias Handler = @Sendable (DownloadRequest) async throws -> DownloadResponse
  /// A closure that creates the bytes of a response.
  public typealias Bytes = @Sendable (DownloadRequest) async throws -> Data

  public let id: ComponentID
  private let handler: Handler
  private let lifetime: Duration?

  /// Creates a downloader of whole responses. Their bodies may stream: see `ResourceBody.init(length:onCancel:pulling:)`.
  ///
  /// - Parameters:
  ///   - name: A name that is equal for downloaders with equal responses, so that their loads are coalesced. With `nil`, the
  ///     downloader equals no other.
  ///   - lifetime: The freshness lifetime of successful responses without a `Cache-Control` field, in whole seconds and at least
  ///     zero, or `nil` if a cache must not store them.
  ///   - handler: A closure called for each request, on the cooperative pool or the load's executor. It must not block. The
  ///     downloader retains it.
  public init(named name: String? = nil, freshFor lifetime: Duration? = nil, handler: @escaping Handler) {
    id = name.map { ComponentID(Self.self, parameters: "\(lifetime.map { "\($0)" } ?? "") named \($0)") } ?? .unique(Self.self)
    self.handler = handler
    self.lifetime = lifetime
  }

  /// Creates a downloader of bytes. Requests other than GET and HEAD get a 405 response without a call of the closure.
  ///
  /// - Parameters:
  ///   - name: A name that is equal for downloaders with equal responses, so that their loads are coalesced. With `nil`, the
  ///     downloader equals no other.
  ///   - contentType: The media type of the bytes, or `nil` for no `Content-Type` field.
  ///   - lifetime: The freshness lifetime of the bytes in whole seconds, at least zero, or `nil` if a cache must not store them.
  ///   - bytes: A closure called for each request. It must not block. The downloader retains it.
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

  /// - Throws: The error of the closure.
  @concurrent
  public func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    if Task.isCancelled { throw .cancelled }
    try CacheError.require("freshFor", lifetime, in: .zero...)
    do {
      var response = try await handler(request)
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

extension HTTPResponse {
  /// Sets `Cache-Control` if the response has no such field: `max-age` in whole seconds, or `no-store` without a lifetime.
  ///
  /// Only a successful response (2xx) gets a lifetime. Other statuses get no field, because the next request may succeed.
  mutating func setFreshness(_ lifetime: Duration?) {
    guard headerFields[.cacheControl] == nil else { return }
    guard let lifetime else {
      headerFields[.cacheControl] = "no-store"
      return
    }
    if status.kind == .successful { headerFields[.cacheControl] = "max-age=\(max(0, lifetime.components.seconds))" }
  }
}

extension CacheError {
  /// Creates the error for one that a user's closure threw.
  init(provider error: any Error) {
    switch error {
    case let error as CacheError: self = error
    case is CancellationError: self = .cancelled
    default:
      self = Task.isCancelled ? .cancelled : CacheError(.other, reason: "the provider failed: \(error)", underlying: error)
    }
  }
}
