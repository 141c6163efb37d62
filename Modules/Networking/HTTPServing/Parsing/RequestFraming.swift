#if Server
import CacheCore
import HTTPTypes
import NIOCore

/// The framing of a request body, which determines its end (RFC 9112 §6.3).
enum RequestFraming: Hashable, Sendable {
  case noBody
  case length(Int64)
  case chunked

  /// Reads the framing from the fields. Fields that another recipient could interpret differently are refused (RFC 9112 §11.2).
  ///
  /// - Parameters:
  ///   - fields: All fields of the request.
  ///   - isHTTP10: Whether the client uses HTTP/1.0, which has no transfer codings (§6.1).
  init(_ fields: HTTPFields, isHTTP10: Bool) throws(RequestRefusal) {
    let lengths = fields[values: .contentLength]
    if fields.contains(.transferEncoding) {
      guard !isHTTP10 else { throw .malformed("Transfer-Encoding in an HTTP/1.0 request") }
      guard lengths.isEmpty else { throw .malformed("Transfer-Encoding together with Content-Length") }
      try Self.check(codings: fields[values: .transferEncoding])
      self = .chunked
      return
    }
    guard let text = lengths.first else {
      self = .noBody
      return
    }
    // A recipient may accept repeated equal lengths (§6.3). No usual client sends them, so the risk is not worth it.
    guard lengths.count == 1 else { throw .malformed("more than one Content-Length") }
    guard let length = Int64(digits: text) else { throw .malformed("Content-Length is not a number") }
    self = length == 0 ? .noBody : .length(length)
  }

  /// Checks that `chunked` is the only coding. Other codings are not implemented (§6.1: 501).
  private static func check(codings values: [String]) throws(RequestRefusal) {
    let codings = values.flatMap { $0.split(separator: ",", omittingEmptySubsequences: false) }
      .map { Substring($0.utf8.trimmingBlanks()).lowercased() }.filter { !$0.isEmpty }
    guard codings.last == "chunked" else {
      throw codings.contains("chunked") || codings.isEmpty
        ? .malformed("the last transfer coding is not chunked")
        : .notImplemented("unknown transfer coding")
    }
    guard codings.count == 1 else {
      throw codings.dropLast().contains("chunked")
        ? .malformed("more than one chunked coding") : .notImplemented("unknown transfer coding")
    }
  }
}

/// A strict decoder of chunked request bodies (RFC 9112 §7.1). If two recipients could read a chunk size in two ways, a client
/// could smuggle a request.
struct ChunkedReader {
  enum Piece {
    case bytes(ByteBuffer)
    case end(HTTPFields)
  }

  private enum State {
    case size
    case bytes(Int64)
    case lineEnd
    case trailers
  }

  private let limits: RequestLimits
  private var state = State.size
  private var trailerEnd: HeadEnd

  init(limits: RequestLimits) {
    self.limits = limits
    trailerEnd = HeadEnd(limits: limits, hasRequestLine: false)
  }

  /// Returns the next piece, or `nil` if more bytes are needed.
  mutating func next(_ buffer: inout ByteBuffer) throws(RequestRefusal) -> Piece? {
    while true {
      switch state {
      case .size:
        guard let size = try size(&buffer) else { return nil }
        state = size == 0 ? .trailers : .bytes(size)
      case .bytes(let rest):
        let count = min(Int(clamping: rest), buffer.readableBytes)
        guard count > 0, let piece = buffer.readSlice(length: count) else { return nil }
        state = rest == Int64(count) ? .lineEnd : .bytes(rest - Int64(count))
        return .bytes(piece)
      case .lineEnd:
        guard let end = buffer.readBytes(length: 2) else { return nil }
        guard end == [13, 10] else { throw .malformed("the chunk is longer than its stated size") }
        state = .size
      case .trailers:
        return try trailers(&buffer).map { .end($0) }
      }
    }
  }

  /// Reads hexadecimal digits, and ignores a chunk extension after them.
  private func size(_ buffer: inout ByteBuffer) throws(RequestRefusal) -> Int64? {
    let view = buffer.readableBytesView
    guard let end = view.firstIndex(of: 10) else {
      guard view.count <= limits.chunkLineBytes else { throw .malformed("the line of the chunk size is too long") }
      return nil
    }
    let line = view[..<end]
    guard line.count <= limits.chunkLineBytes, line.last == 13 else { throw .malformed("invalid chunk size") }
    let content = line.dropLast()
    let digits = content.prefix { $0.isHexDigit }
    let rest = content[digits.endIndex...]
    // 15 digits fit into an Int64. RFC 7230 allowed blanks before an extension.
    guard !digits.isEmpty, digits.count <= 15, rest.allSatisfy(\.isFieldByte),
      rest.isEmpty || rest.first(where: { $0 != 32 && $0 != 9 }) == UInt8(ascii: ";")
    else { throw .malformed("invalid chunk size") }
    let size = digits.reduce(Int64(0)) { $0 << 4 | Int64($1.hexValue ?? 0) }
    buffer.moveReaderIndex(to: end + 1)
    return size
  }

  private mutating func trailers(_ buffer: inout ByteBuffer) throws(RequestRefusal) -> HTTPFields? {
    guard let length = try trailerEnd.find(in: buffer), let section = buffer.readSlice(length: length) else { return nil }
    // NIO's signature does not let the closure throw a typed error.
    return try section.withUnsafeReadableBytes { bytes in
      Result { () throws(RequestRefusal) in try HeadReader(limits: limits).fields(bytes) }
    }.get()
  }
}
#endif
