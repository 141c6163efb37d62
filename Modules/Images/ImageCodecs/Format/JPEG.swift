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

/// A limit on the scans of a JPEG, counted by its markers (ISO/IEC 10918-1 §B.2). A scan covers the whole image,
/// however few bytes it has, and decoding cannot be stopped within one call. A hundred thousand bytes can take minutes.
/// Progressive images have about ten scans.
enum JPEGScans {
  static let most = 100

  static func check(_ data: Data) throws(CacheError) {
    let count = count(data)
    guard count <= most else {
      throw CacheError(.imageLimitExceeded, reason: "JPEG: the image has \(count) scans, the limit is \(most)")
    }
  }

  static func count(_ data: Data) -> Int {
    var scans = 0
    JPEGMarkers.walk(data) { marker, _ in
      if marker == 0xDA { scans += 1 }
      return true
    }
    return scans
  }
}

/// The memory for the coefficients of a JPEG with several scans. A codec stores two bytes per coefficient in full size,
/// whatever the target size.
enum JPEGCoefficients {
  /// Returns the number of bytes, or 0 if one scan contains all components. Such a file is decoded row by row.
  static func byteCount(_ data: Data) -> Int {
    var (count, components) = (0, 0)
    var holdsCoefficients = false
    JPEGMarkers.walk(data) { marker, content in
      switch marker {
      // A frame header (ISO/IEC 10918-1 §B.2.2). The excluded markers in this range are tables.
      case 0xC0...0xCF where ![0xC4, 0xC8, 0xCC].contains(marker) && content.count >= 6:
        components = Int(content[5])
        holdsCoefficients = [0xC2, 0xC6, 0xCA, 0xCE].contains(marker)
        count = byteCount(frame: content)
        return true
      // The header of the first scan (§B.2.3). If it contains only some of the components, other scans follow.
      case 0xDA:
        holdsCoefficients = holdsCoefficients || (content.first.map(Int.init) ?? components) < components
        return false
      default: return true
      }
    }
    return holdsCoefficients ? count : 0
  }

  /// Uses the sampling factors: the components with the largest factor have every pixel.
  private static func byteCount(frame: UnsafeRawBufferPointer) -> Int {
    let (height, width) = (Int(frame[1]) << 8 | Int(frame[2]), Int(frame[3]) << 8 | Int(frame[4]))
    let sampling = stride(from: 7, to: min(6 + Int(frame[5]) * 3, frame.count), by: 3).map {
      (across: Int(frame[$0] >> 4), down: Int(frame[$0] & 15))
    }
    let (across, down) = (max(sampling.map(\.across).max() ?? 1, 1) * 8, max(sampling.map(\.down).max() ?? 1, 1) * 8)
    let units = ((width + across - 1) / across) * ((height + down - 1) / down)
    // Coefficients are stored in blocks of 8 × 8.
    return units * sampling.reduce(0) { $0 + $1.across * $1.down } * 64 * 2
  }
}
