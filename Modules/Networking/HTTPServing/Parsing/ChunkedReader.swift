#if Server
import CacheCore
import HTTPTypes
import NIOCore

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
