public import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The downloader that `limitingBodies(to:)` returns.
package struct SizeLimitedDownloader: Downloader {
  package let id: ComponentID
  private let limit: Int64
  private let base: any Downloader

  package init(_ base: any Downloader, limit: Int64) {
    id = ComponentID(Self.self, "\(limit)", around: base.id)
    self.base = base
    self.limit = limit
  }

  package var preferredExecutor: (any TaskExecutor)? { base.preferredExecutor }

  package func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    try CacheError.require("limit", limit, in: 0...)
    var response = try await base.download(request)
    if let length = response.body.length, length > limit {
      response.body.source.cancel()
      throw .tooLarge("has \(length) bytes", limit: limit, response.head)
    }
    if response.body.data == nil {
      let source = SizeLimitedBody(response.body.source, limit: limit, response.head)
      response.body = ResourceBody(length: response.body.length, source: source)
    }
    return response
  }
}

/// A body that counts the bytes read from it.
private final class SizeLimitedBody: ResourceBody.Source {
  private let source: any ResourceBody.Source
  private let limit: Int64
  private let head: HTTPResponse
  private let received = Lock(Int64(0))

  init(_ source: any ResourceBody.Source, limit: Int64, _ head: HTTPResponse) {
    self.source = source
    self.limit = limit
    self.head = head
  }

  func next() async throws(CacheError) -> Data? {
    // A body that was too large stays failed: a further read must not return the rest.
    try check()
    guard let chunk = try await source.next() else { return nil }
    received.withLock { $0 += Int64(chunk.count) }
    try check()
    return chunk
  }

  private func check() throws(CacheError) {
    let received = received.withLock { $0 }
    guard received > limit else { return }
    source.cancel()
    throw .tooLarge("has at least \(received) bytes", limit: limit, head)
  }

  func cancel() { source.cancel() }

  var trailers: HTTPFields? { source.trailers }
}

extension CacheError {
  static func tooLarge(_ size: String, limit: Int64, _ response: HTTPResponse? = nil) -> CacheError {
    CacheError(.bodyTooLarge, reason: "the body \(size); the limit is \(limit)", response: response)
  }
}

extension Downloader {
  /// Returns this downloader with a maximum body size. The announced size is checked first, and the actual size while the body is
  /// read.
  ///
  /// ```swift
  /// let downloader = engine.limitingBodies(to: 32 << 20)
  /// ```
  ///
  /// The limit applies to the bytes that the caller receives. Around a decoding downloader, these are the decoded bytes. A larger
  /// body throws `CacheError.Code.bodyTooLarge` with both numbers, and its transfer is cancelled.
  ///
  /// - Parameter limit: The maximum body size in bytes, at least zero. With a negative number, requests fail with
  ///   `CacheError.Code.invalidConfiguration`.
  public func limitingBodies(to limit: Int64) -> some Downloader { SizeLimitedDownloader(self, limit: limit) }
}
