#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The chunks of a WebP (RFC 9649 §2.3).
enum WebPChunks {
  /// Calls `visit` for each chunk, in order, with its name and the available part of its content.
  static func walk(
    _ data: Data, _ visit: (_ name: Slice<UnsafeRawBufferPointer>, _ content: Slice<UnsafeRawBufferPointer>) -> Void
  ) {
    data.withUnsafeBytes { bytes in
      var next = 12
      while next + 8 <= bytes.count {
        let length = Int(UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: next + 4, as: UInt32.self)))
        visit(bytes[next..<next + 4], bytes[next + 8..<min(next + 8 + length, bytes.count)])
        // A padding byte follows a chunk of odd length.
        next += 8 + length + length % 2
      }
    }
  }
}
