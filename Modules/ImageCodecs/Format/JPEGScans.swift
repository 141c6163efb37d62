internal import CacheCore

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

/// Counts a JPEG's scans by its markers (ISO/IEC 10918-1 §B.2). Each goes over the whole picture, however few bytes it has, within one call of a codec: a hundred thousand bytes can
/// take minutes. Progressive pictures have about ten.
enum JPEGScans {
  static let most = 100

  static func check(_ data: Data) throws(CacheError) {
    let count = count(data)
    guard count <= most else {
      throw CacheError(.imageLimitExceeded, reason: "JPEG: the picture has \(count) scans, the limit is \(most)")
    }
  }

  static func count(_ data: Data) -> Int {
    data.withUnsafeBytes { bytes in
      var (next, scans) = (2, 0)
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
          if marker == 0xDA { scans += 1 }
          guard next + 3 < bytes.count else { return scans }
          next += 2 + max(Int(bytes[next + 2]) << 8 | Int(bytes[next + 3]), 2)
        }
      }
      return scans
    }
  }
}
