#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// A JPEG's markers (ISO/IEC 10918-1 §B.1.1).
enum JPEGMarkers {
  /// Calls `visit` for each marker that has a length, in order, with what lies behind that length, as far as it is there. Until
  /// it returns false.
  static func walk(_ data: Data, _ visit: (_ marker: UInt8, _ content: UnsafeRawBufferPointer) -> Bool) {
    data.withUnsafeBytes { bytes in
      var next = 2
      while next + 1 < bytes.count {
        // Between markers there is a scan's data, or what decoders pass over. In it, 0xFF is followed by zero.
        guard bytes[next] == 0xFF else {
          // Nearly all of a file is this.
          guard let start = bytes.baseAddress, let found = memchr(start + next, 0xFF, bytes.count - next) else { break }
          next = UnsafeRawPointer(found) - start
          continue
        }
        switch bytes[next + 1] {
        case 0xFF: next += 1
        // Without a length: stuffing, restarts, the beginning, the end.
        case 0x00, 0x01, 0xD0...0xD9: next += 2
        case let marker:
          let start = min(next + 4, bytes.count)
          let end = start < next + 4 ? start : next + 2 + max(Int(bytes[next + 2]) << 8 | Int(bytes[next + 3]), 2)
          guard visit(marker, UnsafeRawBufferPointer(rebasing: bytes[start..<min(end, bytes.count)])) else { return }
          next = end
        }
      }
    }
  }
}
