#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

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
