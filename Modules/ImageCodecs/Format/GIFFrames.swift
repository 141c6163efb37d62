#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The frames of a GIF, found by its blocks without decoding. Some codecs stop counting at a limit, and they allocate
/// memory for each frame.
struct GIFFrames {
  /// The number of frames, or an upper bound. Codecs disagree about malformed files, so every byte that may begin a
  /// frame counts as one.
  private(set) var count = 0
  /// Whether the bytes end before the trailer. Codecs treat such a file as one with fewer frames.
  private(set) var isCut = false
  /// The size of the largest frame. Some codecs allocate each frame in its own size, whatever the size of the image.
  private(set) var largest = PixelSize(0, 0)

  init(_ data: Data) { data.withUnsafeBytes { walk($0) } }

  private mutating func walk(_ bytes: UnsafeRawBufferPointer) {
    var next = bytes.count < 13 ? bytes.count : 13 + Self.tableLength(bytes[10])
    while next < bytes.count {
      switch bytes[next] {
      case 0x3B: return
      case 0x21:
        // In a comment, sub-blocks follow the label. In other extensions, they follow a first block of fixed length. If
        // that length is zero, decoders disagree about the end of the extension.
        guard next + 2 < bytes.count, bytes[next + 1] == 0xFE || bytes[next + 2] != 0 else { return countAll(bytes, from: next) }
        next = Self.endOfSubBlocks(bytes, next + 2)
      case 0x2C:
        count += 1
        guard next + 9 < bytes.count else {
          next = bytes.count
          continue
        }
        let size = PixelSize(
          Int(bytes[next + 5]) | Int(bytes[next + 6]) << 8, Int(bytes[next + 7]) | Int(bytes[next + 8]) << 8)
        if size.area > largest.area { largest = size }
        next = Self.endOfSubBlocks(bytes, next + 10 + Self.tableLength(bytes[next + 9]) + 1)
      default: return countAll(bytes, from: next)
      }
    }
    isCut = true
  }

  private mutating func countAll(_ bytes: UnsafeRawBufferPointer, from start: Int) {
    count += bytes[start...].count { $0 == 0x2C }
  }

  /// Returns the length of the palette that a flags byte declares.
  private static func tableLength(_ flags: UInt8) -> Int { flags & 0x80 == 0 ? 0 : 3 << (Int(flags & 7) + 1) }

  private static func endOfSubBlocks(_ bytes: UnsafeRawBufferPointer, _ start: Int) -> Int {
    var next = start
    while next < bytes.count, bytes[next] != 0 { next += Int(bytes[next]) + 1 }
    return next + 1
  }
}
