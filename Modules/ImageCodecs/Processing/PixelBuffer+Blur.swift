internal import CacheCore

extension PixelBuffer {
  /// Three box means approximate a Gaussian (Wells 1986) at a cost independent of sigma. Colors are premultiplied during
  /// the blur, so that transparent pixels do not affect their neighbors. Beyond the edge, the edge pixels repeat.
  func blurred(_ sigma: Double, _ watch: DecodingDeadline) throws(CacheError) -> PixelBuffer {
    guard sigma > 0.1 else { return self }
    let radii = Self.boxRadii(min(sigma, 1000))
    let (source, channels) = (self, channels)
    var blurred = try ImageStep.allocate(for: size, channels) { to in
      source.withUnsafeBytes { to.copyMemory(from: $0) }
      if channels.hasAlpha { Self.premultiply(to, channels) }
    }
    for radius in radii {
      for isVertical in [false, true] {
        if let end = watch.end { throw end }
        blurred = try blurred.boxMean(radius, isVertical: isVertical)
      }
    }
    guard channels.hasAlpha else { return blurred }
    let last = blurred
    return try ImageStep.allocate(for: size, channels) { to in
      last.withUnsafeBytes { to.copyMemory(from: $0) }
      Self.unpremultiply(to, channels)
    }
  }

  /// Returns the radii of three boxes whose variances add up to that of sigma.
  private static func boxRadii(_ sigma: Double) -> [Int] {
    let ideal = (12 * sigma * sigma / 3 + 1).squareRoot()
    var lower = Int(ideal.rounded(.down))
    if lower % 2 == 0 { lower -= 1 }
    let narrow = Double(lower)
    let count = (12 * sigma * sigma - 3 * narrow * narrow - 12 * narrow - 9) / (-4 * narrow - 4)
    return (0..<3).map { (Double($0) < count.rounded() ? lower : lower + 2) / 2 }
  }

  private func boxMean(_ radius: Int, isVertical: Bool) throws(CacheError) -> PixelBuffer {
    let step = channels.rawValue
    let (length, lines) = isVertical ? (size.height, size.width) : (size.width, size.height)
    let (along, across) = isVertical ? (size.width * step, step) : (step, size.width * step)
    let width = 2 * radius + 1
    return try ImageStep.allocate(for: size, channels) { to in
      withUnsafeBytes { from in
        for line in 0..<lines {
          for channel in 0..<step {
            let start = line * across + channel
            let (first, last) = (Int(from[start]), Int(from[start + (length - 1) * along]))
            var sum = first * (radius + 1)
            for index in 0..<radius { sum += index < length ? Int(from[start + index * along]) : last }
            for index in 0..<length {
              let entering = index + radius
              sum += entering < length ? Int(from[start + entering * along]) : last
              // A leaving pixel beyond the edge counted as the edge pixel.
              let leaving = index - radius - 1
              sum -= leaving < 0 ? first : Int(from[start + leaving * along])
              to[start + index * along] = UInt8((sum + radius) / width)
            }
          }
        }
      }
    }
  }

  private static func premultiply(_ bytes: UnsafeMutableRawBufferPointer, _ channels: Channels) {
    let colors = channels.rawValue - 1
    for start in stride(from: 0, to: bytes.count, by: channels.rawValue) {
      for channel in start..<start + colors {
        bytes[channel] = UInt8((Int(bytes[channel]) * Int(bytes[start + colors]) + 127) / 255)
      }
    }
  }

  private static func unpremultiply(_ bytes: UnsafeMutableRawBufferPointer, _ channels: Channels) {
    let colors = channels.rawValue - 1
    for start in stride(from: 0, to: bytes.count, by: channels.rawValue) {
      let alpha = Int(bytes[start + colors])
      for channel in start..<start + colors {
        bytes[channel] = alpha == 0 ? 0 : UInt8(min((Int(bytes[channel]) * 255 + alpha / 2) / alpha, 255))
      }
    }
  }
}
