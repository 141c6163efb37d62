#if Server
import HTTPTypes
import NIOCore

/// A search for the empty line that ends a header section. It examines each byte once, even if bytes arrive one at a time.
struct HeadEnd {
  private let limits: RequestLimits
  private let hasRequestLine: Bool
  /// The start of the incomplete line and the end of the searched bytes, both relative to the reader index.
  private var lineStart = 0
  private var searched = 0

  /// - Parameters:
  ///   - limits: The limits of the section.
  ///   - hasRequestLine: Whether the section begins with a request line. Trailers do not.
  init(limits: RequestLimits, hasRequestLine: Bool) { (self.limits, self.hasRequestLine) = (limits, hasRequestLine) }

  /// Whether no byte of a section has been searched.
  var isAtStart: Bool { searched == 0 }

  /// Returns the length of the section including its empty line, or `nil` if the empty line has not arrived yet. The section
  /// begins at the buffer's reader index.
  ///
  /// An LF without a CR is refused, because other recipients may not treat it as the end of a line (RFC 9112 §2.2).
  mutating func find(in buffer: ByteBuffer) throws(RequestRefusal) -> Int? {
    let view = buffer.readableBytesView
    let start = view.startIndex
    while let end = view[(start + searched)...].firstIndex(of: 10) {
      let offset = end - start
      guard offset < limits.headBytes else { throw tooLarge }
      guard offset > lineStart, view[end - 1] == 13 else { throw .malformed("a line ends without CR") }
      searched = offset + 1
      if offset - 1 == lineStart {
        (lineStart, searched) = (0, 0)
        return offset + 1
      }
      lineStart = searched
    }
    searched = view.count
    guard searched < limits.headBytes else { throw tooLarge }
    return nil
  }

  private var tooLarge: RequestRefusal {
    hasRequestLine && lineStart == 0
      ? RequestRefusal(status: .uriTooLong, reason: "the request line has more than \(limits.headBytes) bytes")
      : .fieldsTooLarge("the header section has more than \(limits.headBytes) bytes")
  }
}
#endif
