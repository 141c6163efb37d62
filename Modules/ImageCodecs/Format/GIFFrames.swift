#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// A GIF's frames by its blocks, without decoding one: codecs stop counting somewhere, and take memory for each.
struct GIFFrames {
  /// How many there are, or more: where codecs differ about what a malformed file says, every byte that may begin a frame is
  /// taken for one.
  private(set) var count = 0
  /// Whether the bytes end before the file says that it does. Codecs take such a file for one with fewer frames.
  private(set) var isCut = false
  /// The largest frame: some codecs make each in its own size, whatever the picture's is.
  private(set) var largest = PixelSize(0, 0)

  init(_ data: Data) { data.withUnsafeBytes { walk($0) } }

  private mutating func walk(_ bytes: UnsafeRawBufferPointer) {
    var next = bytes.count < 13 ? bytes.count : 13 + Self.tableLength(bytes[10])
    while next < bytes.count {
      switch bytes[next] {
      case 0x3B: return
      case 0x21:
        // A comment's blocks follow its label, any other kind's a first block of fixed length. One of no length ends the
        // extension for some, and not for others.
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

  /// The length of a palette, by the byte that tells of it.
  private static func tableLength(_ flags: UInt8) -> Int { flags & 0x80 == 0 ? 0 : 3 << (Int(flags & 7) + 1) }

  private static func endOfSubBlocks(_ bytes: UnsafeRawBufferPointer, _ start: Int) -> Int {
    var next = start
    while next < bytes.count, bytes[next] != 0 { next += Int(bytes[next]) + 1 }
    return next + 1
  }
}
