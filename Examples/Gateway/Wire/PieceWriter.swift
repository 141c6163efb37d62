#if Gateway
import NIOCore

/// Gathers small pieces on the stack, so that a buffer gets many of them with one write: it looks after its memory for each.
struct PieceWriter: ~Copyable {
  private let gathered: UnsafeMutableRawBufferPointer
  private var count = 0
  private var buffer: ByteBuffer

  /// Writes all that `body` says to the end of `buffer`.
  static func write(to buffer: inout ByteBuffer, _ body: (inout PieceWriter) -> Void) {
    withUnsafeTemporaryAllocation(byteCount: 2048, alignment: 1) { gathered in
      var writer = PieceWriter(gathered, buffer)
      // One owner, or its next write would copy it.
      buffer = ByteBuffer()
      body(&writer)
      writer.flush()
      buffer = writer.buffer
    }
  }

  private init(_ gathered: UnsafeMutableRawBufferPointer, _ buffer: ByteBuffer) {
    self.gathered = gathered
    self.buffer = buffer
  }

  mutating func write(_ text: String) {
    var text = text
    text.withUTF8 { write(UnsafeRawBufferPointer($0)) }
  }

  mutating func write(_ text: StaticString) {
    write(UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }

  mutating func write(_ bytes: UnsafeRawBufferPointer) {
    if bytes.count > gathered.count - count {
      flush()
      guard bytes.count <= gathered.count else {
        buffer.writeBytes(bytes)
        return
      }
    }
    UnsafeMutableRawBufferPointer(rebasing: gathered[count...]).copyMemory(from: bytes)
    count += bytes.count
  }

  private mutating func flush() {
    buffer.writeBytes(UnsafeRawBufferPointer(rebasing: gathered[..<count]))
    count = 0
  }
}
#endif
