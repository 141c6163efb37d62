#if AsyncHTTP
internal import CacheCore
internal import HTTPTypes
internal import NIOCore
internal import NIOHTTP1

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The head of a response and the length of its body.
struct TransferHead: Sendable {
  /// The status and the fields.
  let response: HTTPResponse
  /// The number of body bytes, or `nil` if the head does not say.
  let bodyLength: Int64?
  /// The name of the protocol in ALPN (RFC 7301).
  let protocolName: String

  /// - Parameters:
  ///   - status: The status code.
  ///   - version: The version of the protocol.
  ///   - headers: The received headers.
  ///   - method: The method of the request. A response to HEAD has no body.
  /// - Throws: `CacheError.Code.malformedResponse` for an invalid status, which traps in HTTPTypes. The connections of
  ///   a caller's client may have no ``ResponseGuard``.
  init(status: Int, version: HTTPVersion, headers: HTTPHeaders, method: HTTPRequest.Method) throws(CacheError) {
    if let error = ResponseGuard.refusal(ofStatus: status) { throw error }
    let fields = HTTPFields(received: headers)
    response = HTTPResponse(status: HTTPResponse.Status(code: status), headerFields: fields)
    protocolName = version.major == 2 ? "h2" : "http/\(version.major).\(version.minor)"
    if method == .head || status == 204 || status == 304 {
      // `Content-Length` stays in the fields, because it describes the response to GET (RFC 9110 §8.6).
      bodyLength = 0
    } else if fields.contains(.transferEncoding) {
      bodyLength = nil
    } else {
      bodyLength = fields.contentLength
    }
  }
}

/// Received bytes that were not read yet. The buffers are joined when they are read. If the body is collected, they are joined
/// when they arrive.
struct Chunk: Sendable {
  private var first: ByteBuffer?
  private var others: [ByteBuffer] = []
  /// The bytes of a body that is collected.
  private var collected: Data?
  /// The number of bytes in all buffers.
  private(set) var count = 0

  var isEmpty: Bool { count == 0 }

  /// Creates an empty chunk whose bytes are joined when they are read.
  init() {}

  /// Creates an empty chunk for a body of this length. Its bytes are copied when they arrive, so that the connection can reuse
  /// its buffer.
  init(collecting length: Int) {
    // The length is the server's claim, so it must not reserve a large buffer.
    collected = Data(capacity: min(length, 1 << 20))
  }

  mutating func append(_ part: ByteBuffer) {
    count += part.readableBytes
    if collected != nil { return part.withUnsafeReadableBytes { collected?.append(contentsOf: $0) } }
    if first == nil { first = part } else { others.append(part) }
  }

  /// All bytes, copied once. A buffer is a slice of a larger buffer of the connection, which a stored body must not retain.
  ///
  /// NIOFoundationCompat could return the slice without a copy. But it would link all of Foundation into a program that needs
  /// `FoundationEssentials` only.
  var data: Data {
    guard let first else { return collected ?? Data() }
    guard !others.isEmpty else { return first.withUnsafeReadableBytes { Data($0) } }
    var data = Data(capacity: count)
    for part in CollectionOfOne(first) + others { part.withUnsafeReadableBytes { data.append(contentsOf: $0) } }
    return data
  }
}
#endif
