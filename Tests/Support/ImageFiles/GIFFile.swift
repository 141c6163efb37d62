#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// A GIF built from bytes, with frames of one color each from a palette of four (black, red, green, blue).
package struct GIFFile {
  package var width: Int
  package var height: Int
  /// The color of each frame, as an index in the palette, and its delay in hundredths of a second.
  package var frames: [(color: UInt8, delay: UInt8)]
  /// 0: forever; `nil`: unspecified, which means once.
  package var loops: UInt8?

  package init(width: Int = 2, height: Int = 2, frames: [(color: UInt8, delay: UInt8)], loops: UInt8? = nil) {
    (self.width, self.height, self.frames, self.loops) = (width, height, frames, loops)
  }

  package var data: Data {
    var file = Data("GIF89a".utf8) + Data([UInt8(width), 0, UInt8(height), 0, 0x81, 0, 0])
    file += Data([0, 0, 0, 255, 0, 0, 0, 255, 0, 0, 0, 255])
    if let loops { file += Data([0x21, 0xFF, 11]) + Data("NETSCAPE2.0".utf8) + Data([3, 1, loops, 0, 0]) }
    var pixels: [UInt8: Data] = [:]
    for frame in frames {
      file += Data([0x21, 0xF9, 4, 0, frame.delay, 0, 0, 0])
      file += Data([0x2C, 0, 0, 0, 0, UInt8(width), 0, UInt8(height), 0, 0])
      let encoded = pixels[frame.color] ?? Self.pixels(frame.color, count: width * height)
      pixels[frame.color] = encoded
      file += encoded
    }
    return file + Data([0x3B])
  }

  /// LZW with fixed codes of three bits: a clear code (4) before every pixel, and the end code (5).
  private static func pixels(_ color: UInt8, count: Int) -> Data {
    let codes: [UInt8] = Array([[UInt8]](repeating: [4, color], count: count).joined()) + [5]
    var bytes: [UInt8] = []
    var (buffer, filled) = (0, 0)
    for code in codes {
      buffer |= Int(code) << filled
      filled += 3
      while filled >= 8 {
        bytes.append(UInt8(buffer & 0xFF))
        buffer >>= 8
        filled -= 8
      }
    }
    if filled > 0 { bytes.append(UInt8(buffer)) }
    let blocks = stride(from: 0, to: bytes.count, by: 255).map { bytes[$0..<min($0 + 255, bytes.count)] }
    return Data([2] + blocks.flatMap { [UInt8($0.count)] + $0 } + [0])
  }
}
