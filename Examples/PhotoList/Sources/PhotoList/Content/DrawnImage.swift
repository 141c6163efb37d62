import CacheUI
import Foundation

/// An image that is drawn in code. It has the same pixels in every run and on every platform.
struct DrawnImage: Sendable {
  /// The seed of the colors, the shapes and the grain.
  var seed: Int

  /// Draws a ring on a transparent background, for a small symbol.
  func symbol(_ size: Int) throws(CacheError) -> PixelBuffer {
    let center = Double(size - 1) / 2
    let (outer, inner) = (center - 1, center * Double(2 + seed % 4) / 7)
    let (near, far) = (Self.color(Double(seed) / 56, 1), Self.color(Double(seed) / 56 + 0.3, 0.6))
    return try draw(PixelSize(size, size), .rgba) { x, y in
      let (right, down) = (Double(x) - center, Double(y) - center)
      let distance = (right * right + down * down).squareRoot()
      let coverage = min(max(outer - distance + 0.5, 0), 1) * min(max(distance - inner + 0.5, 0), 1)
      let color = Self.mix(near, far, Double(y) / Double(size))
      return RGBA(color.red, color.green, color.blue, UInt8(coverage * 255))
    }
  }

  /// Draws a sky, a sun and hills with the grain of a photograph.
  func landscape(_ size: PixelSize) throws(CacheError) -> PixelBuffer {
    let (width, height) = (Double(size.width), Double(size.height))
    let hue = Double(seed) / 9
    let (top, bottom) = (Self.color(hue, 0.8), Self.color(hue + 0.1, 1))
    let (ground, sun) = (Self.color(hue + 0.45, 0.5), RGBA(255, 244, 200))
    let (sunX, sunY, radius) = (width * Double(3 + seed % 7) / 12, height / 4, height / 9)
    let horizon = (0..<size.width).map { x in
      let place = Double(x) / width * .pi * Double(2 + seed % 3) + Double(seed)
      return (0.7 + sin(place) * 0.06 + sin(place * 2.3) * 0.04) * height
    }
    var noise = UInt64(seed) &* 0x9e37_79b9_7f4a_7c15 | 1
    return try draw(size, .rgb) { x, y in
      let (right, down) = (Double(x) - sunX, Double(y) - sunY)
      let isSun = right * right + down * down < radius * radius
      let color = Double(y) > horizon[x] ? ground : isSun ? sun : Self.mix(top, bottom, Double(y) / height)
      noise ^= noise << 13
      noise ^= noise >> 7
      noise ^= noise << 17
      let grain = Int(noise >> 59) - 16
      func channel(_ value: UInt8) -> UInt8 { UInt8(min(max(Int(value) + grain, 0), 255)) }
      return RGBA(channel(color.red), channel(color.green), channel(color.blue))
    }
  }

  private func draw(
    _ size: PixelSize, _ channels: PixelBuffer.Channels, _ color: (Int, Int) -> RGBA
  ) throws(CacheError) -> PixelBuffer {
    let drawn = PixelBuffer(size: size, channels: channels) { bytes in
      var place = 0
      for y in 0..<size.height {
        for x in 0..<size.width {
          let color = color(x, y)
          (bytes[place], bytes[place + 1], bytes[place + 2]) = (color.red, color.green, color.blue)
          if channels.hasAlpha { bytes[place + 3] = color.alpha }
          place += channels.rawValue
        }
      }
    }
    guard let drawn else { throw CacheError(.imageLimitExceeded, reason: "no memory for an image of \(size) pixels") }
    return drawn
  }

  private static func mix(_ first: RGBA, _ second: RGBA, _ share: Double) -> RGBA {
    func channel(_ first: UInt8, _ second: UInt8) -> UInt8 { UInt8(Double(first) * (1 - share) + Double(second) * share) }
    return RGBA(channel(first.red, second.red), channel(first.green, second.green), channel(first.blue, second.blue))
  }

  /// Returns a color of a hue, where 1 is a full turn.
  private static func color(_ hue: Double, _ value: Double) -> RGBA {
    func channel(_ offset: Double) -> UInt8 {
      UInt8((0.25 + 0.75 * (0.5 + 0.5 * cos((hue - offset) * 2 * .pi))) * value * 255)
    }
    return RGBA(channel(0), channel(1.0 / 3), channel(2.0 / 3))
  }
}
