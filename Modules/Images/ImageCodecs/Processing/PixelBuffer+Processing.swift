internal import CacheCore

extension PixelBuffer {
  /// Returns a part that is within the image.
  func part(_ rect: PixelRect) throws(CacheError) -> PixelBuffer {
    if rect.size == size { return self }
    let step = channels.rawValue
    return try ImageStep.allocate(for: rect.size, channels) { to in
      withUnsafeBytes { from in
        let length = rect.size.width * step
        for row in 0..<rect.size.height {
          let start = ((rect.y + row) * size.width + rect.x) * step
          UnsafeMutableRawBufferPointer(rebasing: to[row * length..<(row + 1) * length])
            .copyMemory(from: UnsafeRawBufferPointer(rebasing: from[start..<start + length]))
        }
      }
    }
  }

  /// Applies an orientation.
  func upright(from orientation: ImageOrientation) throws(CacheError) -> PixelBuffer {
    if orientation == .up { return self }
    let (step, width, height) = (channels.rawValue, size.width, size.height)
    let target = orientation.applied(to: size)
    // The source index of the first pixel, and the distances between the sources of neighbors in a row and in a column.
    let (first, along, down) =
      switch orientation {
      case .up: (0, 1, width)
      case .upMirrored: (width - 1, -1, width)
      case .down: (width * height - 1, -1, -width)
      case .downMirrored: (width * (height - 1), 1, -width)
      case .leftMirrored: (0, width, 1)
      case .right: (width * (height - 1), -width, 1)
      case .rightMirrored: (width * height - 1, -width, -1)
      case .left: (width - 1, width, -1)
      }
    return try ImageStep.allocate(for: target, channels) { to in
      withUnsafeBytes { from in
        var next = 0
        for row in 0..<target.height {
          var source = (first + row * down) * step
          for _ in 0..<target.width {
            for channel in 0..<step { to[next + channel] = from[source + channel] }
            next += step
            source += along * step
          }
        }
      }
    }
  }
}

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

  /// Divides the colors by alpha, rounded to the nearest value. Fully transparent pixels become black.
  static func unpremultiply(_ bytes: UnsafeMutableRawBufferPointer, _ channels: Channels) {
    let colors = channels.rawValue - 1
    for start in stride(from: 0, to: bytes.count, by: channels.rawValue) {
      let alpha = Int(bytes[start + colors])
      if alpha == 255 { continue }
      for channel in start..<start + colors {
        bytes[channel] = alpha == 0 ? 0 : UInt8(min((Int(bytes[channel]) * 255 + alpha / 2) / alpha, 255))
      }
    }
  }
}

/// A rectangle with rounded corners, and its coverage of each pixel.
struct RoundedShape {
  private let (width, height, radius): (Double, Double, Double)

  init(size: PixelSize, radius: Double) {
    (width, height) = (Double(size.width), Double(size.height))
    self.radius = radius.isNaN ? 0 : min(max(radius, 0), min(width, height) / 2)
  }

  /// Returns the coverage from 0 (outside) to 255 (inside), by the distance of the pixel's center from the edge.
  func coverage(_ x: Int, _ y: Int, inset: Double = 0) -> Int {
    // Relative to the center of the shape, mirrored into the quadrant in which both are positive.
    let u = abs(Double(x) + 0.5 - width / 2) - width / 2 + radius
    let v = abs(Double(y) + 0.5 - height / 2) - height / 2 + radius
    let outside = (max(u, 0) * max(u, 0) + max(v, 0) * max(v, 0)).squareRoot() + min(max(u, v), 0) - radius
    return Int(clamping: (min(max(0.5 - outside - max(inset, 0), 0), 1)) * 255)
  }
}
