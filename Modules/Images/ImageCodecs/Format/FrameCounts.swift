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
  /// Whether the first frame leaves a part of the screen empty. Browsers show that part transparent. libvips makes it
  /// black if no frame has transparent pixels. libnsgif distrusts screens of some common sizes and those with a side
  /// above 2,048, and cuts them at the end of the first frame.
  private(set) var leavesGap = false
  /// The size of the image: the screen, or more if the first frame exceeds it.
  private var screen = PixelSize(0, 0)
  /// The index of the first block.
  private var start = 0
  /// The size of the largest frame. Some codecs allocate each frame in its own size, whatever the size of the image.
  private(set) var largest = PixelSize(0, 0)

  init(_ data: Data) { data.withUnsafeBytes { walk($0) } }

  private mutating func walk(_ bytes: UnsafeRawBufferPointer) {
    guard bytes.count >= 13 else { return isCut = true }
    screen = Self.size(bytes, 6)
    start = 13 + Self.tableLength(bytes[10])
    var isInFrame = true
    var next = start
    while next < bytes.count, bytes[next] != 0x3B {
      switch bytes[next] {
      case 0x21:
        // In a comment, sub-blocks follow the label. In other extensions, they follow a first block of fixed length. If
        // that length is zero, decoders disagree about the end of the extension.
        guard next + 2 < bytes.count, bytes[next + 1] == 0xFE || bytes[next + 2] != 0 else { return countAll(bytes, from: next) }
        // A graphic control extension begins a frame.
        if bytes[next + 1] == 0xF9 { isInFrame = true }
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
          let origin = Self.size(bytes, next + 1)
          let end = PixelSize(origin.width + size.width, origin.height + size.height)
          screen = PixelSize(max(screen.width, end.width), max(screen.height, end.height))
          leavesGap = size != screen && max(screen.width, screen.height) <= UInt16.max
          // The screen is drawn as a frame.
          if leavesGap, screen.area > largest.area { largest = screen }
        }
        next = Self.endOfSubBlocks(bytes, next + 10 + Self.tableLength(bytes[next + 9]) + 1)
        if next <= bytes.count { isInFrame = false }
      default: return countAll(bytes, from: next)
      }
    }
    isCut = next >= bytes.count && isInFrame
  }

  /// Returns the file with a frame before the first one that fills the screen with transparent pixels.
  func addingTransparentScreen(to data: Data) -> Data {
    let sides = [screen.width, screen.height].flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }
    // The frame stays (disposal method 1), and its first color is transparent. It has a palette of two colors.
    let control: [UInt8] = [0x21, 0xF9, 4, 0b101, 0, 0, 0, 0]
    let descriptor: [UInt8] = [0x2C, 0, 0, 0, 0] + sides + [0x80]
    let palette = [UInt8](repeating: 0, count: 6)
    var file = Data(data.prefix(start))
    for part in [control, descriptor, palette, Self.constantPixels(screen.area)] { file += part }
    return file + data.dropFirst(start)
  }

  /// Returns the image data of pixels that all have the first color (GIF 89a, appendix F). After each code, the decoder
  /// knows a run that is one pixel longer.
  private static func constantPixels(_ count: Int) -> [UInt8] {
    let (clear, end, rootBits, mostBits) = (4, 5, 3, 12)
    var codes = BitWriter()
    codes.append(clear, rootBits)
    var (left, known, bits) = (count, 0, rootBits)
    while left > 0 {
      // The first code is one pixel. The code for a run of two pixels follows the end code.
      known += 1
      let run = min(known, left)
      codes.append(run == 1 ? 0 : end + run - 1, bits)
      left -= run
      let next = end + known
      if next == 1 << mostBits - 1 {
        codes.append(clear, bits)
        (known, bits) = (0, rootBits)
      } else if next == 1 << bits {
        bits += 1
      }
    }
    codes.append(end, bits)
    let bytes = codes.finished
    let blocks = stride(from: 0, to: bytes.count, by: 255).map { bytes[$0..<min($0 + 255, bytes.count)] }
    return [UInt8(rootBits - 1)] + blocks.flatMap { [UInt8($0.count)] + $0 } + [0]
  }

  /// A sequence of codes, each with its lowest bit first.
  private struct BitWriter {
    private var bytes: [UInt8] = []
    private var pending = 0
    private var pendingBits = 0

    mutating func append(_ code: Int, _ bits: Int) {
      pending |= code << pendingBits
      pendingBits += bits
      while pendingBits >= 8 { writeByte() }
    }

    var finished: [UInt8] { pendingBits > 0 ? bytes + [UInt8(pending)] : bytes }

    private mutating func writeByte() {
      bytes.append(UInt8(pending & 0xFF))
      pending >>= 8
      pendingBits -= 8
    }
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

/// The frame count of a PNG, from its chunks without decoding (PNG, third edition, §11.3.2). `acTL` declares the count,
/// and each frame has an `fcTL`.
enum PNGFrames {
  static func count(_ data: Data) -> Int {
    data.withUnsafeBytes { bytes in
      var (next, frames, said) = (8, 0, 0)
      while next + 8 <= bytes.count {
        let kind = bytes[next + 4..<next + 8]
        if kind.elementsEqual("fcTL".utf8) { frames += 1 }
        if kind.elementsEqual("acTL".utf8), next + 12 <= bytes.count { said = max(said, number(bytes, next + 8)) }
        next += 12 + number(bytes, next)
      }
      return max(frames, said)
    }
  }

  private static func number(_ bytes: UnsafeRawBufferPointer, _ start: Int) -> Int {
    Int(UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: start, as: UInt32.self)))
  }
}
