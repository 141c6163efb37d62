#if ContentDecoding
public import CacheCore
internal import HTTPTypes

/// A downloader that undoes the content codings of an engine which hands bodies over as they came: gzip and deflate, and br on
/// Apple platforms.
///
/// ```swift
/// let downloader = engine.decoding(limit: 64 << 20)
/// ```
///
/// A request that names no `Accept-Encoding` and asks for no range is sent with one. A decoded answer's head loses
/// `Content-Encoding` and `Content-Length`, so that it describes the bytes that are handed over; its `ETag` stays, which is the
/// origin's name for what it will be asked about again. 204, 206 and 304 and answers to HEAD are not touched, nor is a body with
/// a coding that is unknown here: it keeps its fields.
public struct DecodingDownloader: Downloader {
  public let id: ComponentID
  /// How far codings are undone.
  public let limits: ContentDecoding
  private let base: any Downloader

  /// A downloader that decodes.
  ///
  /// - Parameters:
  ///   - base: who transfers.
  ///   - limits: how far codings are undone.
  public init(_ base: any Downloader, limits: ContentDecoding = ContentDecoding()) {
    id = ComponentID(
      Self.self, "\(limits.limit) \(limits.ratio.map(String.init) ?? "") \(limits.codings)", around: base.id)
    self.base = base
    self.limits = limits
  }

  public var preferredExecutor: (any TaskExecutor)? { base.preferredExecutor }

  /// - Throws: `CacheError.Code.damagedContentCoding` when there are more codings than are undone, else what the wrapped
  ///   downloader throws. The body throws `damagedContentCoding`, `truncatedBody` when it ends in the middle of a coding, and
  ///   `bodyTooLarge` beyond a limit.
  public func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    var asked = request
    if request.head.headerFields[.acceptEncoding] == nil, request.head.headerFields[.range] == nil {
      asked.head.headerFields[.acceptEncoding] = ContentCoding.accepted
    }
    let response = try await base.download(asked)
    guard request.head.method != .head, ![204, 206, 304].contains(response.head.status.code) else { return response }
    let codings: [ContentCoding]
    do throws(CacheError) {
      codings = try ContentCoding.codings(of: response.head.headerFields, limit: limits.codings)
    } catch {
      response.body.source.cancel()
      throw error
    }
    return decoded(response, codings)
  }

  private func decoded(_ response: DownloadResponse, _ codings: [ContentCoding]) -> DownloadResponse {
    let wire = ByteCount()
    var bodies: [DecodingBody] = []
    // The last one applied is the first to be undone.
    for coding in codings.reversed() {
      bodies.append(
        DecodingBody(bodies.last ?? response.body.source, coding, limits, wire, isOnWire: bodies.isEmpty))
    }
    guard let outer = bodies.last else { return response }
    var decoded = response
    decoded.head.headerFields[.contentEncoding] = nil
    decoded.head.headerFields[.contentLength] = nil
    decoded.body = ResourceBody(length: nil, source: outer)
    // The count alone: metrics outlive the body, and must not keep its transfer.
    let (measured, count) = (response.metrics, outer.decoded)
    decoded.metrics = {
      var metrics = measured()
      metrics.bytesDecoded = count.value
      return metrics
    }
    return decoded
  }
}

extension Downloader {
  /// This downloader, with content codings undone.
  ///
  /// - Parameters:
  ///   - limit: decoded bytes that a body may have.
  ///   - ratio: decoded bytes for each one on the wire; nil: any.
  public func decoding(limit: Int64 = 256 << 20, ratio: Int? = nil) -> DecodingDownloader {
    decoding(ContentDecoding(limit: limit, ratio: ratio))
  }

  /// This downloader, with content codings undone.
  ///
  /// - Parameter limits: how far.
  public func decoding(_ limits: ContentDecoding) -> DecodingDownloader { DecodingDownloader(self, limits: limits) }
}
#endif
