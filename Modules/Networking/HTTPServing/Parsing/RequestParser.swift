#if Server
import HTTPTypes
package import NIOCore

/// A parser that turns the bytes of a connection into requests.
///
/// Unknown methods and fields must pass unchanged, because a proxy forwards them. SwiftNIO's decoder refuses unknown methods,
/// replaces bytes that are not UTF-8, and stops at `Upgrade`. This parser also applies every rule against request smuggling
/// (RFC 9112 §11.2).
package struct RequestParser {
  package enum Part {
    case head(RequestHead)
    case body(ByteBuffer)
    case end
  }

  private enum State {
    case head
    case length(Int64)
    case chunked(ChunkedReader)
    case end
    case refused(RequestRefusal)
  }

  private let limits: RequestLimits
  private var state = State.head
  private var buffer = ByteBuffer()
  private var headEnd: HeadEnd

  package init() { self.init(limits: RequestLimits()) }

  init(limits: RequestLimits) {
    self.limits = limits
    headEnd = HeadEnd(limits: limits, hasRequestLine: true)
  }

  /// Whether no byte of the next request has arrived.
  var isAtStart: Bool {
    if case .head = state { buffer.readableBytes == 0 } else { false }
  }

  /// The number of bytes that have arrived and have not been parsed.
  var unreadBytes: Int { buffer.readableBytes }

  package mutating func append(_ bytes: ByteBuffer) {
    if buffer.readableBytes == 0 {
      buffer = bytes
    } else {
      buffer.writeImmutableBuffer(bytes)
    }
  }

  /// Returns the next part, or `nil` if more bytes are needed. After a refusal, every call throws it again.
  package mutating func next() throws(RequestRefusal) -> Part? {
    do {
      return try read()
    } catch {
      state = .refused(error)
      buffer = ByteBuffer()
      throw error
    }
  }

  private mutating func read() throws(RequestRefusal) -> Part? {
    switch state {
    case .head: return try head().map { .head($0) }
    case .length(let rest):
      let count = min(Int(clamping: rest), buffer.readableBytes)
      guard count > 0, let piece = buffer.readSlice(length: count) else { return nil }
      state = rest == Int64(count) ? .end : .length(rest - Int64(count))
      return .body(piece)
    case .chunked(var reader):
      let piece = try reader.next(&buffer)
      state = .chunked(reader)
      switch piece {
      case .bytes(let bytes): return .body(bytes)
      // A recipient may drop trailers (RFC 9110 §6.5.1), and no downloader sends them.
      case .end:
        state = .head
        return .end
      case nil: return nil
      }
    case .end:
      state = .head
      return .end
    case .refused(let refusal): throw refusal
    }
  }

  private mutating func head() throws(RequestRefusal) -> RequestHead? {
    guard !startsWithEmptyLine() else { return nil }
    guard let length = try headEnd.find(in: buffer), let section = buffer.readSlice(length: length) else { return nil }
    let head = try section.withUnsafeReadableBytes { bytes in
      Result { () throws(RequestRefusal) in try HeadReader(limits: limits).head(bytes) }
    }.get()
    state =
      switch head.framing {
      case .noBody: .end
      case .length(let length): .length(length)
      case .chunked: .chunked(ChunkedReader(limits: limits))
      }
    return head
  }

  /// Skips empty lines, which some clients send after a body (RFC 9112 §2.2). Returns whether only the CR of one has arrived.
  private mutating func startsWithEmptyLine() -> Bool {
    // A section that has been searched does not begin with an empty line.
    guard headEnd.isAtStart else { return false }
    while buffer.readableBytes >= 2, buffer.getInteger(at: buffer.readerIndex, as: UInt16.self) == 0x0D0A {
      buffer.moveReaderIndex(forwardBy: 2)
    }
    return buffer.readableBytes == 1 && buffer.getInteger(at: buffer.readerIndex, as: UInt8.self) == 13
  }
}
#endif
