#if ContentDecoding
public import CacheCore
internal import HTTPTypes

/// The downloader that `decoding(limit:ratio:codings:)` returns.
package struct DecodingDownloader: Downloader {
  package let id: ComponentID
  private let limits: DecodingLimits
  private let base: any Downloader

  package init(_ base: any Downloader, limits: DecodingLimits = DecodingLimits()) {
    id = ComponentID(Self.self, "\(limits.limit) \(limits.ratio.map(String.init) ?? "") \(limits.codings)", around: base.id)
    self.base = base
    self.limits = limits
  }

  package var preferredExecutor: (any TaskExecutor)? { base.preferredExecutor }

  package func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    try limits.check()
    var outgoing = request
    if request.head.headerFields[.acceptEncoding] == nil, request.head.headerFields[.range] == nil {
      outgoing.head.headerFields[.acceptEncoding] = ContentCoding.accepted
    }
    let response = try await base.download(outgoing)
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
    // The coding that was applied last is removed first.
    for coding in codings.reversed() {
      bodies.append(DecodingBody(bodies.last ?? response.body.source, coding, limits, wire, isOnWire: bodies.isEmpty))
    }
    guard let outer = bodies.last else { return response }
    var decoded = response
    decoded.head.headerFields[.contentEncoding] = nil
    decoded.head.headerFields[.contentLength] = nil
    decoded.body = ResourceBody(length: nil, source: outer)
    // Captures only the counter: metrics outlive the body and must not retain its transfer.
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
  /// Returns this downloader with content decoding: gzip and deflate, and br on Apple platforms. It is meant for engines that
  /// return bodies in encoded form.
  ///
  /// `Accept-Encoding` is added to a request that has neither that field nor a range. A decoded response loses `Content-Encoding`
  /// and `Content-Length`, so that its head describes the decoded bytes. Its `ETag` stays, because a later revalidation needs it.
  /// Responses to HEAD and those with status 204, 206 or 304 are returned unchanged. So are responses with another coding.
  ///
  /// A response with too many codings, or a damaged one, fails with `CacheError.Code.damagedContentCoding`. A body that ends in
  /// the middle of a coding throws `truncatedBody`, and a body beyond a limit throws `bodyTooLarge`.
  ///
  /// ```swift
  /// let downloader = engine.decoding(limit: 64 << 20)
  /// ```
  ///
  /// - Parameters:
  ///   - limit: The maximum size of a decoded body in bytes, also between two codings, at least zero.
  ///   - ratio: The maximum quotient of decoded and received bytes, from the second mebibyte of a body on, at least 1, or `nil`
  ///     for no limit. Deflate reaches 1,032 at most.
  ///   - codings: The maximum number of codings of one body, at least 1. With a number out of its range, requests fail with
  ///     `CacheError.Code.invalidConfiguration`.
  public func decoding(limit: Int64 = 256 << 20, ratio: Int? = nil, codings: Int = 2) -> some Downloader {
    DecodingDownloader(self, limits: DecodingLimits(limit: limit, ratio: ratio, codings: codings))
  }
}

/// The limits of decoding, which protect against decompression bombs.
package struct DecodingLimits: Hashable, Sendable {
  /// The maximum size of a decoded body in bytes, also between two codings.
  let limit: Int64
  /// The maximum quotient of decoded and received bytes, or `nil` for no limit.
  let ratio: Int?
  /// The maximum number of codings of one body.
  let codings: Int

  package init(limit: Int64 = 256 << 20, ratio: Int? = nil, codings: Int = 2) {
    self.limit = limit
    self.ratio = ratio
    self.codings = codings
  }

  func check() throws(CacheError) {
    try CacheError.require("limit", limit, in: 0...)
    try CacheError.require("ratio", ratio, in: 1...)
    try CacheError.require("codings", codings, in: 1...)
  }

  /// The maximum number of bytes that one step produces. It bounds the cost of a decompression bomb.
  static let step = 64 << 10
  /// The number of decoded bytes from which the ratio is checked. A short text of blanks is not an attack.
  static let ratioThreshold: Int64 = 1 << 20
}

/// A content coding that this module can decode (RFC 9110 §8.4.1).
enum ContentCoding: String, CaseIterable {
  case gzip
  case deflate
  #if canImport(Compression)
  case br
  #endif

  init?(name: some StringProtocol) {
    let name = name.lowercased()
    // An old name for gzip (RFC 9110 §8.4.1.3).
    self.init(rawValue: name == "x-gzip" ? "gzip" : name)
  }

  /// The value of a request's `Accept-Encoding` field.
  static var accepted: String { allCases.map(\.rawValue).joined(separator: ", ") }

  /// Returns the codings of a body in the order in which they were applied. Returns an empty array if there are none or if one is
  /// unknown, because then none can be decoded.
  ///
  /// - Throws: `CacheError.Code.damagedContentCoding` if there are more than `limit`. Such a body is an attack on the decoder.
  static func codings(of fields: HTTPFields, limit: Int) throws(CacheError) -> [ContentCoding] {
    let names = fields[values: .contentEncoding].flatMap { $0.split(separator: ",") }
      .map { String(Substring($0.utf8.trimmingBlanks())) }
      .filter { !$0.isEmpty && $0.lowercased() != "identity" }
    var codings: [ContentCoding] = []
    for name in names {
      guard let coding = ContentCoding(name: name) else { return [] }
      codings.append(coding)
    }
    guard codings.count <= limit else {
      throw CacheError(.damagedContentCoding, reason: "the body has \(codings.count) content codings; the limit is \(limit)")
    }
    return codings
  }

  func makeDecoder() -> any ContentDecoder {
    switch self {
    case .gzip: Inflater(.gzip)
    case .deflate: Inflater(.deflate)
    #if canImport(Compression)
    case .br: BrotliDecoder()
    #endif
    }
  }
}
#endif
