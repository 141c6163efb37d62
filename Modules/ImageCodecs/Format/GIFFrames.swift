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
  /// Whether the bytes end within a frame, or before the first one. A file whose last frame is complete is drawn without
  /// its trailer, as by browsers.
  private(set) var isCut = false
  /// Whether the first frame leaves a part of the screen empty, and no frame has transparent pixels. Browsers show that
  /// part transparent. libvips then makes an image without alpha, where it is black.
  private(set) var leavesGap = false
  /// The index after the last block.
  private var end = 0
  /// The size of the largest frame. Some codecs allocate each frame in its own size, whatever the size of the image.
  private(set) var largest = PixelSize(0, 0)

  init(_ data: Data) { data.withUnsafeBytes { walk($0) } }

  private mutating func walk(_ bytes: UnsafeRawBufferPointer) {
    guard bytes.count >= 13 else { return isCut = true }
    let screen = Self.size(bytes, 6)
    var (isInFrame, isFilled, isTransparent) = (true, true, false)
    var next = 13 + Self.tableLength(bytes[10])
    while next < bytes.count, bytes[next] != 0x3B {
      switch bytes[next] {
      case 0x21:
        // In a comment, sub-blocks follow the label. In other extensions, they follow a first block of fixed length. If
        // that length is zero, decoders disagree about the end of the extension.
        guard next + 2 < bytes.count, bytes[next + 1] == 0xFE || bytes[next + 2] != 0 else { return countAll(bytes, from: next) }
        // A graphic control extension begins a frame.
        if bytes[next + 1] == 0xF9 {
          isInFrame = true
          if next + 3 < bytes.count, bytes[next + 3] & 1 == 1 { isTransparent = true }
        }
        next = Self.endOfSubBlocks(bytes, next + 2)
      case 0x2C:
        count += 1
        isInFrame = true
        guard next + 9 < bytes.count else {
          next = bytes.count
          continue
        }
        let size = Self.size(bytes, next + 5)
        if size.area > largest.area { largest = size }
        if count == 1 {
          let isAtOrigin = bytes[next + 1..<next + 5].allSatisfy { $0 == 0 }
          isFilled = isAtOrigin && size.width >= screen.width && size.height >= screen.height
        }
        next = Self.endOfSubBlocks(bytes, next + 10 + Self.tableLength(bytes[next + 9]) + 1)
        if next <= bytes.count { isInFrame = false }
      default: return countAll(bytes, from: next)
      }
    }
    end = min(next, bytes.count)
    isCut = next >= bytes.count && isInFrame
    leavesGap = !isCut && count > 0 && !isFilled && !isTransparent
  }

  /// Returns the file with one more frame, of one transparent pixel. libvips then makes all frames with alpha.
  func addingTransparentFrame(to data: Data) -> Data {
    let control: [UInt8] = [0x21, 0xF9, 4, 1, 0, 0, 0, 0]
    let frame: [UInt8] = [0x2C, 0, 0, 0, 0, 1, 0, 1, 0, 0x80, 0, 0, 0, 0, 0, 0, 2, 2, 0x44, 1, 0]
    return data.prefix(end) + control + frame + [0x3B]
  }

  private static func size(_ bytes: UnsafeRawBufferPointer, _ start: Int) -> PixelSize {
    PixelSize(Int(bytes[start]) | Int(bytes[start + 1]) << 8, Int(bytes[start + 2]) | Int(bytes[start + 3]) << 8)
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
