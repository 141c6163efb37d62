internal import CacheCore

extension PixelBuffer {
  /// Luma of Rec. 709 in integers: 54, 183 and 19 of 256.
  func gray() throws(CacheError) -> PixelBuffer {
    if channels.rawValue < 3 { return self }
    let (step, hasAlpha) = (channels.rawValue, channels.hasAlpha)
    return try ImageStep.allocate(for: size, hasAlpha ? .grayAlpha : .gray) { to in
      withUnsafeBytes { from in
        var next = 0
        for start in stride(from: 0, to: from.count, by: step) {
          let (red, green, blue) = (Int(from[start]), Int(from[start + 1]), Int(from[start + 2]))
          let luma: Int = 54 * red + 183 * green + 19 * blue
          to[next] = UInt8((luma + 128) >> 8)
          next += 1
          guard hasAlpha else { continue }
          to[next] = from[start + 3]
          next += 1
        }
      }
    }
  }

  /// Blends a color over each pixel with a weight from 0 to 255. On a transparent pixel, the result is only as opaque
  /// as the weight.
  func mixed(with color: RGBA, weight: (Int, Int) -> Int) throws(CacheError) -> PixelBuffer {
    let pixels = try widened()
    let over = [Int(color.red), Int(color.green), Int(color.blue)]
    return try ImageStep.allocate(for: size, .rgba) { to in
      pixels.withUnsafeBytes { from in
        var start = 0
        for y in 0..<size.height {
          for x in 0..<size.width {
            let weight = weight(x, y)
            for channel in 0..<3 {
              let under = Int(from[start + channel])
              to[start + channel] = UInt8((under * (255 - weight) + over[channel] * weight + 127) / 255)
            }
            to[start + 3] = from[start + 3]
            start += 4
          }
        }
      }
    }
  }

  /// Makes the pixels outside rounded corners transparent.
  func cut(to radius: Double) throws(CacheError) -> PixelBuffer {
    let pixels = try widened()
    let shape = RoundedShape(size: size, radius: radius)
    return try ImageStep.allocate(for: size, .rgba) { to in
      pixels.withUnsafeBytes { from in
        to.copyMemory(from: from)
        var alpha = 3
        for y in 0..<size.height {
          for x in 0..<size.width {
            to[alpha] = UInt8((Int(from[alpha]) * shape.coverage(x, y) + 127) / 255)
            alpha += 4
          }
        }
      }
    }
  }
}
