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
