#if Gateway
import HTTPTypes
import NIOCore

/// Looks for the empty line that ends a section of lines, and looks at each byte once, however few come at a time.
struct HeadEnd {
  private let limits: RequestLimits
  /// Behind the reader index: where the line that has no end yet begins, and how far it has been searched.
  private var lineStart = 0
  private var searched = 0

  init(limits: RequestLimits) { self.limits = limits }

  /// Whether nothing of a section has been searched.
  var isAtStart: Bool { searched == 0 }

  /// How long the section is, its empty line included; nil when that has not come yet. The section begins at the buffer's reader
  /// index.
  ///
  /// An LF without its CR could end a line here and none elsewhere, so it is refused (RFC 9112 §2.2 leaves it to the recipient).
  mutating func find(in buffer: ByteBuffer) throws(RequestRefusal) -> Int? {
    let view = buffer.readableBytesView
    let start = view.startIndex
    while let end = view[(start + searched)...].firstIndex(of: 10) {
      let offset = end - start
      guard offset < limits.headBytes else { throw tooLarge }
      guard offset > lineStart, view[end - 1] == 13 else { throw .malformed("a line that ends without CR") }
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
    lineStart == 0
      ? RequestRefusal(status: .uriTooLong, reason: "a line of more than \(limits.headBytes) bytes")
      : .fieldsTooLarge("a header section of more than \(limits.headBytes) bytes")
  }
}
#endif
