#if Gateway
import HTTPTypes
import NIOCore

/// Makes requests of a connection's bytes.
///
/// SwiftNIO's own decoder knows a list of methods and refuses all others, reads values as UTF-8, and stops for good at `Upgrade`;
/// a gateway passes on what it does not know. It is also where smuggling is stopped (RFC 9112 §11.2), so every rule stands here.
struct RequestParser {
  enum Part {
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

  init(limits: RequestLimits = RequestLimits()) {
    self.limits = limits
    headEnd = HeadEnd(limits: limits)
  }

  /// Whether nothing has come of a next request.
  var isAtStart: Bool {
    if case .head = state { buffer.readableBytes == 0 } else { false }
  }

  /// Bytes that have come and not been read.
  var unreadBytes: Int { buffer.readableBytes }

  mutating func append(_ bytes: ByteBuffer) {
    if buffer.readableBytes == 0 {
      buffer = bytes
    } else {
      buffer.writeImmutableBuffer(bytes)
    }
  }

  /// The next part; nil when more has to come first. A refusal is final.
  mutating func next() throws(RequestRefusal) -> Part? {
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
      // Trailers may be dropped (RFC 9110 §6.5.1), and no engine sends them.
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
      case .none: .end
      case .length(let length): .length(length)
      case .chunked: .chunked(ChunkedReader(limits: limits))
      }
    return head
  }

  /// Some clients send an empty line after a body (RFC 9112 §2.2). True when there is half of one, and nothing else.
  private mutating func startsWithEmptyLine() -> Bool {
    // A section that has been searched begins with something else.
    guard headEnd.isAtStart else { return false }
    while buffer.readableBytes >= 2, buffer.getInteger(at: buffer.readerIndex, as: UInt16.self) == 0x0D0A {
      buffer.moveReaderIndex(forwardBy: 2)
    }
    return buffer.readableBytes == 1 && buffer.getInteger(at: buffer.readerIndex, as: UInt8.self) == 13
  }
}
#endif
