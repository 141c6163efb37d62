import CacheCore
import ImageCodecs

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Images that the tests generate without files.
enum TestImages {
  /// Whether the engine is ImageIO. It writes no WebP files, and Core Graphics multiplies colors by alpha.
  static var usesImageIO: Bool {
    #if canImport(ImageIO)
    true
    #else
    false
    #endif
  }

  /// Whether the engine writes WebP.
  static let hasWebP = ImageEncoder.isWritten(.webp)

  /// The largest difference of a color with an alpha of 64 or more after lossless encoding and decoding.
  static let losslessDistance = usesImageIO ? 2 : 0

  /// Returns the formats that the engine writes, for tests that make their files.
  static func written(_ formats: [ImageFormat]) -> [ImageFormat] { formats.filter { hasWebP || $0 != .webp } }

  /// An image of four quarters: upper left red, upper right green, lower left blue, lower right gray. It is larger than
  /// a codec's blocks.
  static func quarters(_ width: Int = 64, _ height: Int = 48, alpha: UInt8? = nil) -> DecodedImage {
    let size = PixelSize(width, height)
    let pixels = PixelBuffer(size: size, channels: alpha == nil ? .rgb : .rgba) { bytes in
      let step = alpha == nil ? 3 : 4
      for y in 0..<height {
        for x in 0..<width {
          let color = quarter(x, y, size)
          let start = (y * width + x) * step
          bytes[start] = color.red
          bytes[start + 1] = color.green
          bytes[start + 2] = color.blue
          if let alpha { bytes[start + 3] = alpha }
        }
      }
    }
    guard let pixels else { fatalError("no room for \(size)") }
    return DecodedImage(pixels)
  }

  static func quarter(_ x: Int, _ y: Int, _ size: PixelSize) -> RGBA {
    switch (x * 2 < size.width, y * 2 < size.height) {
    case (true, true): RGBA(255, 0, 0)
    case (false, true): RGBA(0, 255, 0)
    case (true, false): RGBA(0, 0, 255)
    case (false, false): RGBA(128, 128, 128)
    }
  }

  /// Returns the colors in the centers of the four quarters, in the order above.
  static func quarters(of pixels: PixelBuffer) -> [RGBA] {
    let (x, y) = (pixels.size.width / 4, pixels.size.height / 4)
    let (right, bottom) = (pixels.size.width - 1 - x, pixels.size.height - 1 - y)
    return [pixels[x, y], pixels[right, y], pixels[x, bottom], pixels[right, bottom]]
  }

  static let colors = [RGBA(255, 0, 0), RGBA(0, 255, 0), RGBA(0, 0, 255), RGBA(128, 128, 128)]

  /// Returns a JPEG with an EXIF orientation, in an APP1 segment after the first marker.
  static func oriented(_ jpeg: Data, _ orientation: Int) -> Data {
    let tiff: [UInt8] =
      Array("MM".utf8) + [0, 0x2A, 0, 0, 0, 8, 0, 1, 0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, UInt8(orientation), 0, 0, 0, 0, 0, 0]
    return segment(0xE1, Array("Exif\0\0".utf8) + tiff, in: jpeg)
  }

  /// Returns a JPEG with a color profile.
  static func profiled(_ jpeg: Data, _ profile: [UInt8]) -> Data {
    segment(0xE2, Array("ICC_PROFILE\0".utf8) + [1, 1] + profile, in: jpeg)
  }

  private static func segment(_ marker: UInt8, _ content: [UInt8], in jpeg: Data) -> Data {
    let length = content.count + 2
    return jpeg.prefix(2) + Data([0xFF, marker, UInt8(length >> 8), UInt8(length & 0xFF)] + content) + jpeg.dropFirst(2)
  }
}

/// Returns whether two colors look equal. Lossy codecs change them slightly.
func isClose(_ a: RGBA, _ b: RGBA, within distance: Int = 12) -> Bool {
  zip([a.red, a.green, a.blue, a.alpha], [b.red, b.green, b.blue, b.alpha]).allSatisfy { abs(Int($0) - Int($1)) <= distance }
}

/// Returns whether colors are those of a lossless file. With ImageIO, only their product with alpha remains of them.
func areLossless(_ a: [RGBA], _ b: [RGBA]) -> Bool {
  func shown(_ color: RGBA) -> RGBA {
    guard TestImages.usesImageIO else { return color }
    let channels = [color.red, color.green, color.blue].map { UInt8((Int($0) * Int(color.alpha) + 127) / 255) }
    return RGBA(channels[0], channels[1], channels[2], color.alpha)
  }
  return areClose(a.map(shown), b.map(shown), within: 1)
}

func areClose(_ a: [RGBA], _ b: [RGBA], within distance: Int = 12) -> Bool {
  a.count == b.count && zip(a, b).allSatisfy { isClose($0, $1, within: distance) }
}
