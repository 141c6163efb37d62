#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// What a codec keeps of a JPEG whose pixels come in several scans: all coefficients, two bytes each, in full size, however small
/// the picture is to become.
enum JPEGCoefficients {
  /// In bytes; 0 where one scan has all components, which is decoded row by row.
  static func byteCount(_ data: Data) -> Int {
    var (count, components) = (0, 0)
    var isKept = false
    JPEGMarkers.walk(data) { marker, content in
      switch marker {
      // A frame's header (ISO/IEC 10918-1 §B.2.2); the others of that row are tables.
      case 0xC0...0xCF where ![0xC4, 0xC8, 0xCC].contains(marker) && content.count >= 6:
        components = Int(content[5])
        isKept = [0xC2, 0xC6, 0xCA, 0xCE].contains(marker)
        count = byteCount(frame: content)
        return true
      // The first scan's (§B.2.3): of one component out of several, the others follow.
      case 0xDA:
        isKept = isKept || (content.first.map(Int.init) ?? components) < components
        return false
      default: return true
      }
    }
    return isKept ? count : 0
  }

  /// By the components' sampling: the largest in each direction has every pixel.
  private static func byteCount(frame: UnsafeRawBufferPointer) -> Int {
    let (height, width) = (Int(frame[1]) << 8 | Int(frame[2]), Int(frame[3]) << 8 | Int(frame[4]))
    let sampling = stride(from: 7, to: min(6 + Int(frame[5]) * 3, frame.count), by: 3).map {
      (across: Int(frame[$0] >> 4), down: Int(frame[$0] & 15))
    }
    let (across, down) = (max(sampling.map(\.across).max() ?? 1, 1) * 8, max(sampling.map(\.down).max() ?? 1, 1) * 8)
    let units = ((width + across - 1) / across) * ((height + down - 1) / down)
    // Each in blocks of 8 × 8.
    return units * sampling.reduce(0) { $0 + $1.across * $1.down } * 64 * 2
  }
}
