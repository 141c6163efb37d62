internal import CacheCore

/// One step of a processor: its name with all parameters, and its work.
struct ImageStep: Sendable {
  /// The name, which is part of cache keys.
  let name: String
  /// The size rule, if the step only resizes. A decoder can perform such a step.
  var sizing: ImageSizing?
  let apply: @Sendable (PixelBuffer, DecodingDeadline) throws(CacheError) -> PixelBuffer

  /// Allocates the result of a step. The memory passed to `fill` is zeroed.
  static func allocate(
    for size: PixelSize, _ channels: PixelBuffer.Channels, _ fill: (UnsafeMutableRawBufferPointer) -> Void
  ) throws(CacheError) -> PixelBuffer {
    try ImageLimits.standard.check(ImageHeader(format: .pixels, size: size))
    guard let buffer = PixelBuffer(size: size, channels: channels, fill: fill) else {
      throw PixelBuffer.outOfMemory(for: size)
    }
    return buffer
  }
}

extension ImageFormat {
  /// The format of pixels that do not come from a file.
  static let pixels = Self(name: "pixels", mediaType: "application/octet-stream", fileExtension: "bin")
}
