internal import CacheCore

extension PixelBuffer {
  /// Divides the colors of RGBA pixels by alpha, rounded to the nearest value. Fully transparent pixels become black.
  static func undoPremultiplication(_ bytes: UnsafeMutableRawBufferPointer) {
    for start in stride(from: 0, to: bytes.count - 3, by: 4) {
      let alpha = Int(bytes[start + 3])
      if alpha == 255 { continue }
      for channel in start..<start + 3 {
        bytes[channel] = alpha == 0 ? 0 : UInt8(min((Int(bytes[channel]) * 255 + alpha / 2) / alpha, 255))
      }
    }
  }

  /// Returns the image composed over one color, or itself if it has no alpha.
  func flattened(onto ground: RGBA) throws(CacheError) -> PixelBuffer {
    guard channels.hasAlpha else { return self }
    let pixels = try widened()
    let under = [Int(ground.red), Int(ground.green), Int(ground.blue)]
    let flat = PixelBuffer(size: size, channels: .rgba) { to in
      pixels.withUnsafeBytes { from in
        for start in stride(from: 0, to: from.count - 3, by: 4) {
          let alpha = Int(from[start + 3])
          for channel in 0..<3 {
            to[start + channel] = UInt8((Int(from[start + channel]) * alpha + under[channel] * (255 - alpha) + 127) / 255)
          }
          to[start + 3] = 255
        }
      }
    }
    guard let flat else { throw Self.outOfMemory(for: size) }
    return flat
  }
}
