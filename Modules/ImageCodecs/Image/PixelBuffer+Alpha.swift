internal import CacheCore

extension PixelBuffer {
  /// Takes alpha out of the colours of RGBA pixels, rounded to the nearest; where nothing is seen, the colour is black.
  static func undoPremultiplication(_ bytes: UnsafeMutableRawBufferPointer) {
    for start in stride(from: 0, to: bytes.count - 3, by: 4) {
      let alpha = Int(bytes[start + 3])
      if alpha == 255 { continue }
      for channel in start..<start + 3 {
        bytes[channel] = alpha == 0 ? 0 : UInt8(min((Int(bytes[channel]) * 255 + alpha / 2) / alpha, 255))
      }
    }
  }

  /// The picture as it is seen on a ground of one colour; itself, where nothing shines through it.
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
    guard let flat else { throw Self.noRoom(for: size) }
    return flat
  }
}
