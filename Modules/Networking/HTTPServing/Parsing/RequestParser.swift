#if Server
import CacheCore
public import HTTPTypes
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

/// The validated head of a request.
package struct RequestHead: Sendable {
  /// The head as an HTTP request. Its fields include `Host`, in order, with unchanged bytes.
  package let request: HTTPRequest
  /// The target exactly as the client sent it, for the log.
  let rawTarget: String
  /// Whether the version is HTTP/1.0. Every other minor version is treated as 1.1 (RFC 9110 §2.5).
  let isHTTP10: Bool
  let framing: RequestFraming

  /// Whether the client wants to keep the connection open after the response (RFC 9112 §9.3).
  var keepsAlive: Bool {
    guard let connection = request.headerFields[.connection] else { return !isHTTP10 }
    let options = connection.lowercasedMembers
    if options.contains("close") { return false }
    return !isHTTP10 || options.contains("keep-alive")
  }

  /// Whether the client waits for `100 Continue` before it sends the body (RFC 9110 §10.1.1). HTTP/1.0 has no such mechanism.
  var expectsContinue: Bool { !isHTTP10 && request.headerFields[.expect]?.lowercased() == "100-continue" }

  /// Whether the client understands trailers (RFC 9110 §6.5.1).
  var acceptsTrailers: Bool { request.headerFields[.te]?.lowercasedMembers.contains("trailers") == true }
}

/// The sizes above which a request is refused. Bodies have no limit because they stream.
struct RequestLimits: Hashable, Sendable {
  /// The largest target, in bytes. A longer one gets 414.
  var targetBytes = 16 * 1024
  /// The largest request line with header section, or trailer section, in bytes. A longer section gets 431, and a longer request
  /// line 414.
  var headBytes = 64 * 1024
  /// The largest number of fields in a section. More get 431.
  var fieldCount = 256
  /// The longest chunk size with its extensions, in bytes (RFC 9112 §7.1.1 says that a recipient ought to limit them).
  var chunkLineBytes = 4 * 1024
}

/// The reason why a request is refused: a status, and one line for the client. The connection is closed, because the start of the
/// next request is unknown.
public struct RequestRefusal: Error, Hashable {
  /// The status of the response, such as 400.
  public var status: HTTPResponse.Status
  /// The reason in one line.
  public var reason: String

  /// The bytes are not HTTP/1.1, or they are ambiguous (RFC 9112 §2.2, §11.2).
  static func malformed(_ reason: String) -> Self { Self(status: .badRequest, reason: reason) }

  /// The header section has too many bytes or fields (RFC 6585 §5).
  static func fieldsTooLarge(_ reason: String) -> Self {
    Self(status: .requestHeaderFieldsTooLarge, reason: reason)
  }

  /// The request needs a function that the server does not have (RFC 9110 §15.6.2).
  static func notImplemented(_ reason: String) -> Self { Self(status: .notImplemented, reason: reason) }
}
#endif
