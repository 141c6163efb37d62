internal import CacheCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The operations of a platform's codecs. Everything that does not need a codec is implemented outside.
protocol ImageEngine: Sendable {
  /// Reads a header. `format` was detected from the first bytes, and `data` is within the byte limit.
  func header(of data: Data, _ format: ImageFormat) throws(CacheError) -> ImageHeader

  /// Decodes a still image, or the first frame: upright, in sRGB.
  ///
  /// - Parameters:
  ///   - size: The size of the result. Codecs that can, decode directly to it.
  ///   - watch: The deadline, checked repeatedly during decoding.
  func pixels(
    of data: Data, _ header: ImageHeader, size: PixelSize, partial: Bool, watch: DecodingDeadline
  ) throws(CacheError) -> PixelBuffer

  /// Returns the frames of an animated image.
  func frames(
    of data: Data, _ header: ImageHeader, size: PixelSize, partial: Bool, limits: ImageLimits
  ) throws(CacheError) -> any FrameSource

  /// Encodes pixels as a file.
  func encode(_ pixels: PixelBuffer, _ settings: ImageEncoder, _ watch: DecodingDeadline) throws(CacheError) -> Data

  /// Resizes pixels to exactly the given size.
  func resize(_ pixels: PixelBuffer, to size: PixelSize, _ watch: DecodingDeadline) throws(CacheError) -> PixelBuffer

  /// Returns the most salient part of the given size, which is at most that of the image.
  func attention(in pixels: PixelBuffer, size: PixelSize) throws(CacheError) -> PixelRect
}
