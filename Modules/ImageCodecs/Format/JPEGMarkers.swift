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

/// The markers of a JPEG (ISO/IEC 10918-1 §B.1.1).
enum JPEGMarkers {
  /// Calls `visit` for each marker segment, in order, until it returns `false`. The content is the available part of
  /// the segment after its length.
  static func walk(_ data: Data, _ visit: (_ marker: UInt8, _ content: UnsafeRawBufferPointer) -> Bool) {
    data.withUnsafeBytes { bytes in
      var next = 2
      while next + 1 < bytes.count {
        // Between segments there is scan data, or bytes that decoders skip. In scan data, zero follows 0xFF.
        guard bytes[next] == 0xFF else {
          // `memchr`, because nearly the whole file is scan data.
          guard let start = bytes.baseAddress, let found = memchr(start + next, 0xFF, bytes.count - next) else { break }
          next = UnsafeRawPointer(found) - start
          continue
        }
        switch bytes[next + 1] {
        case 0xFF: next += 1
        // Markers without a length: stuffing, restart, start and end of the image.
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
