internal import CacheCore

/// One step of a processor: what it is called, with all its parameters, and what it does.
struct ImageStep: Sendable {
  /// It stands in cache keys.
  let name: String
  /// What it makes of the size, where that is all it does: a decoder can do that itself.
  var sizing: ImageSizing?
  let apply: @Sendable (PixelBuffer, DecodingDeadline) throws(CacheError) -> PixelBuffer

  /// Room for a step's result. `fill` gets zeros.
  static func room(
    for size: PixelSize, _ channels: PixelBuffer.Channels, _ fill: (UnsafeMutableRawBufferPointer) -> Void
  ) throws(CacheError) -> PixelBuffer {
    try ImageLimits.standard.check(ImageHeader(format: .pixels, size: size))
    guard let buffer = PixelBuffer(size: size, channels: channels, fill: fill) else {
      throw PixelBuffer.noRoom(for: size)
    }
    return buffer
  }
}

extension ImageFormat {
  /// Pixels that no file has.
  static let pixels = Self(name: "pixels", mediaType: "application/octet-stream", fileExtension: "bin")
}
