#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// Counts a GIF's frames by its blocks, without decoding one: codecs stop counting somewhere, and take memory for each.
enum GIFFrames {
  static func count(_ data: Data) -> Int {
    data.withUnsafeBytes { bytes in
      guard bytes.count >= 13 else { return 0 }
      var next = 13 + tableLength(bytes[10])
      var frames = 0
      while next < bytes.count {
        switch bytes[next] {
        case 0x21:
          next = endOfSubBlocks(bytes, next + 2)
        case 0x2C:
          frames += 1
          guard next + 9 < bytes.count else { return frames }
          next = endOfSubBlocks(bytes, next + 10 + tableLength(bytes[next + 9]) + 1)
        default:
          return frames
        }
      }
      return frames
    }
  }

  /// The length of a palette, by the byte that tells of it.
  private static func tableLength(_ flags: UInt8) -> Int { flags & 0x80 == 0 ? 0 : 3 << (Int(flags & 7) + 1) }

  private static func endOfSubBlocks(_ bytes: UnsafeRawBufferPointer, _ start: Int) -> Int {
    var next = start
    while next < bytes.count, bytes[next] != 0 { next += Int(bytes[next]) + 1 }
    return next + 1
  }
}
