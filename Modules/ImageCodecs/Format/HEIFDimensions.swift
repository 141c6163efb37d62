internal import CacheCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The largest picture that a HEIF file (AVIF, HEIC) tells of, read from its boxes (ISO/IEC 23008-12 §6.5.3, `ispe`) before any codec sees them: codecs have limits of
/// their own, and those are not the caller's.
struct HEIFDimensions {
  private(set) var largest: PixelSize?

  init(_ data: Data) {
    // A picture's boxes come before its data; what stands behind the first mebibyte is left to the codec.
    let bytes = Array(data.prefix(1 << 20))
    walk(bytes, 0..<bytes.count, path: ["meta", "iprp", "ipco"])
  }

  private mutating func walk(_ bytes: [UInt8], _ range: Range<Int>, path: [String]) {
    var start = range.lowerBound
    while start + 8 <= range.upperBound {
      var length = Self.number(bytes, start)
      // 0: to the end. 1: in 64 bits, which is of use for media data alone.
      if length == 0 { length = range.upperBound - start }
      if length == 1, start + 16 <= range.upperBound {
        guard Self.number(bytes, start + 8) == 0 else { return }
        length = Self.number(bytes, start + 12)
      }
      guard length >= 8 else { return }
      let end = min(start + length, range.upperBound)
      let kind = String(decoding: bytes[start + 4..<start + 8], as: UTF8.self)
      if let wanted = path.first, kind == wanted {
        // "meta" has a version before its boxes.
        let content = start + (kind == "meta" ? 12 : 8)
        if content <= end { walk(bytes, content..<end, path: Array(path.dropFirst())) }
      } else if path.isEmpty, kind == "ispe", start + 20 <= end {
        let size = PixelSize(Self.number(bytes, start + 12), Self.number(bytes, start + 16))
        if size.area > largest?.area ?? -1 { largest = size }
      }
      start = end
    }
  }

  private static func number(_ bytes: [UInt8], _ start: Int) -> Int { bytes[start..<start + 4].reduce(0) { $0 << 8 | Int($1) } }
}
