#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// A TIFF built from bytes (TIFF 6.0): RGB with any number of extra channels, in one strip. Uncompressed.
package struct TIFFFile {
  package var width: Int
  package var height: Int
  /// The channels of each pixel, row by row, at least three per pixel.
  package var pixels: [[UInt8]]

  package init(width: Int, height: Int, pixels: [[UInt8]]) {
    (self.width, self.height, self.pixels) = (width, height, pixels)
  }

  package var data: Data {
    let channels = pixels.first?.count ?? 0
    let extra = max(channels - 3, 0)
    let count = extra > 0 ? 10 : 9
    // The header, the directory's entries between their count and the offset of the next directory, then values too
    // long for an entry.
    let bits = 8 + 2 + count * 12 + 4
    let kinds = bits + channels * 2
    let strip = kinds + extra * 2
    var file = Data("II".utf8) + Self.short(42) + Self.long(8) + Self.short(count)
    file += Self.entry(256, [width], at: 0) + Self.entry(257, [height], at: 0)
    file += Self.entry(258, Array(repeating: 8, count: channels), at: bits)
    // Uncompressed; RGB.
    file += Self.entry(259, [1], at: 0) + Self.entry(262, [2], at: 0)
    file += Self.short(273) + Self.short(4) + Self.long(1) + Self.long(strip)
    file += Self.entry(277, [channels], at: 0) + Self.entry(278, [height], at: 0)
    file += Self.short(279) + Self.short(4) + Self.long(1) + Self.long(pixels.count * channels)
    // The meaning of the extra channels is unspecified.
    if extra > 0 { file += Self.entry(338, Array(repeating: 0, count: extra), at: kinds) }
    file += Self.long(0)
    for _ in 0..<channels { file += Self.short(8) }
    for _ in 0..<extra { file += Self.short(0) }
    return file + Data(pixels.joined())
  }

  /// Returns a directory entry of short numbers. Up to two are stored in the entry, more at a separate offset.
  private static func entry(_ tag: Int, _ values: [Int], at place: Int) -> Data {
    let inside = values.count == 1 ? [values[0], 0] : values
    return short(tag) + short(3) + long(values.count)
      + (values.count > 2 ? long(place) : short(inside[0]) + short(inside[1]))
  }

  private static func short(_ value: Int) -> Data { Data([0, 8].map { UInt8(truncatingIfNeeded: value >> $0) }) }
  private static func long(_ value: Int) -> Data { Data([0, 8, 16, 24].map { UInt8(truncatingIfNeeded: value >> $0) }) }
}
