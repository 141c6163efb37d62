package import ImageCodecs

#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// An animated RGBA PNG built from bytes, with one color per frame.
package struct AnimatedPNGFile: Sendable {
  package struct Frame: Sendable {
    package var color: RGBA
    package var x: Int
    package var y: Int
    package var width: Int
    package var height: Int
    package var delay: (Int, Int)
    /// 0: keep, 1: clear, 2: restore.
    package var disposal: UInt8
    /// 0: replace, 1: over.
    package var blending: UInt8

    package init(
      color: RGBA, x: Int = 0, y: Int = 0, width: Int = 4, height: Int = 4, delay: (Int, Int) = (10, 100), disposal: UInt8 = 0,
      blending: UInt8 = 0
    ) {
      (self.color, self.x, self.y, self.width, self.height) = (color, x, y, width, height)
      (self.delay, self.disposal, self.blending) = (delay, disposal, blending)
    }
  }

  package var frames: [Frame]
  package var plays: Int
  /// The declared number of frames; `nil` means the actual number.
  package var announced: Int?
  /// A default image for decoders without APNG support; `nil` means the first frame.
  package var still: RGBA?
  /// A closure that changes the type or content of a chunk before it is written. It receives the chunk's index.
  package var change: @Sendable (Int, inout String, inout [UInt8]) -> Void

  package init(
    frames: [Frame], plays: Int = 0, announced: Int? = nil, still: RGBA? = nil,
    change: @escaping @Sendable (Int, inout String, inout [UInt8]) -> Void = { _, _, _ in }
  ) {
    (self.frames, self.plays, self.announced, self.still, self.change) = (frames, plays, announced, still, change)
  }

  package var data: Data {
    var chunks: [(String, [UInt8])] = [
      ("IHDR", PNGFile.number(4) + PNGFile.number(4) + [8, 6, 0, 0, 0]),
      ("acTL", PNGFile.number(announced ?? frames.count) + PNGFile.number(plays)),
    ]
    if let still { chunks.append(("IDAT", Self.pixels(still, 4, 4))) }
    var sequence = 0
    for frame in frames {
      let control = [frame.width, frame.height, frame.x, frame.y].flatMap(PNGFile.number)
      let delay = [frame.delay.0, frame.delay.1].flatMap { [UInt8($0 >> 8), UInt8($0 & 255)] }
      chunks.append(("fcTL", PNGFile.number(sequence) + control + delay + [frame.disposal, frame.blending]))
      sequence += 1
      let pixels = Self.pixels(frame.color, frame.width, frame.height)
      guard chunks.contains(where: { $0.0 == "IDAT" }) else {
        chunks.append(("IDAT", pixels))
        continue
      }
      // In two parts, as encoders may write it.
      for part in [pixels.prefix(7), pixels.dropFirst(7)] {
        chunks.append(("fdAT", PNGFile.number(sequence) + part))
        sequence += 1
      }
    }
    chunks.append(("IEND", []))
    var file = Data([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A])
    for (index, chunk) in chunks.enumerated() {
      var (kind, content) = chunk
      change(index, &kind, &content)
      file += PNGFile.chunk(kind, content)
    }
    return file
  }

  private static func pixels(_ color: RGBA, _ width: Int, _ height: Int) -> [UInt8] {
    let pixel = [color.red, color.green, color.blue, color.alpha]
    let row = [0] + Array([[UInt8]](repeating: pixel, count: width).joined())
    return PNGFile.zlib(Array([[UInt8]](repeating: row, count: height).joined()))
  }
}
