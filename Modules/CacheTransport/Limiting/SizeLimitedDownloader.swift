public import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// A downloader whose bodies have a largest size, looked at as soon as it is announced, and counted while they are read.
///
/// The bytes that count are those that are handed over: around a downloader that decodes, the decoded ones. A larger body throws
/// `CacheError.Code.bodyTooLarge` with both numbers, and its transfer is stopped.
public struct SizeLimitedDownloader: Downloader {
  public let id: ComponentID
  /// Bytes.
  public let limit: Int64
  private let base: any Downloader

  /// A downloader of bodies that are not larger than `limit`.
  ///
  /// - Parameters:
  ///   - base: who transfers.
  ///   - limit: bytes; below 0 is 0.
  public init(_ base: any Downloader, limit: Int64) {
    let limit = max(0, limit)
    id = ComponentID(Self.self, "\(limit)", around: base.id)
    self.base = base
    self.limit = limit
  }

  public var preferredExecutor: (any TaskExecutor)? { base.preferredExecutor }

  /// - Throws: `CacheError.Code.bodyTooLarge` when the head announces more, else what the wrapped downloader throws.
  public func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    var response = try await base.download(request)
    if let length = response.body.length, length > limit {
      response.body.source.cancel()
      throw .tooLarge("has \(length) bytes", limit: limit, status: response.head.status.code)
    }
    if response.body.data == nil {
      let source = SizeLimitedBody(response.body.source, limit: limit, status: response.head.status.code)
      response.body = ResourceBody(length: response.body.length, source: source)
    }
    return response
  }
}

/// Counts what is read.
private final class SizeLimitedBody: ResourceBody.Source {
  private let source: any ResourceBody.Source
  private let limit: Int64
  private let status: Int
  private let received = Lock(Int64(0))

  init(_ source: any ResourceBody.Source, limit: Int64, status: Int) {
    self.source = source
    self.limit = limit
    self.status = status
  }

  func next() async throws(CacheError) -> Data? {
    // What was too large stays so: the rest is not let through when it is asked for again.
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
    throw .tooLarge("has \(received) bytes and maybe more", limit: limit, status: status)
  }

  func cancel() { source.cancel() }

  var trailers: HTTPFields? { source.trailers }
}

extension CacheError {
  static func tooLarge(_ size: String, limit: Int64, status: Int?) -> CacheError {
    CacheError(.bodyTooLarge, reason: "the body \(size), and \(limit) are taken", status: status)
  }
}

extension Downloader {
  /// This downloader, with bodies that are not larger than `limit` bytes.
  ///
  /// - Parameter limit: bytes, as they are handed over.
  public func limitingBodies(to limit: Int64) -> SizeLimitedDownloader { SizeLimitedDownloader(self, limit: limit) }
}
