internal import CacheCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// What a platform's codecs do for this module. Everything that can be decided without them is decided outside.
protocol ImageEngine: Sendable {
  /// Reads a header. `format` is told by the first bytes, and `data` is within the limit of bytes.
  func header(of data: Data, _ format: ImageFormat) throws(CacheError) -> ImageHeader

  /// Makes pixels, upright, in sRGB: of a picture that stands still, or of the first frame.
  ///
  /// - Parameters:
  ///   - size: what the picture is to have; codecs that can are told so, and never decode the rest.
  ///   - watch: asked now and then whether to go on.
  func pixels(
    of data: Data, _ header: ImageHeader, size: PixelSize, partial: Bool, watch: DecodingDeadline
  ) throws(CacheError) -> PixelBuffer

  /// The frames of an animated picture.
  func frames(
    of data: Data, _ header: ImageHeader, size: PixelSize, partial: Bool, limits: ImageLimits
  ) throws(CacheError) -> any FrameSource

  /// A file of pixels.
  func encode(_ pixels: PixelBuffer, _ settings: ImageEncoder, _ watch: DecodingDeadline) throws(CacheError) -> Data

  /// The same pixels, exactly so large.
  func resize(_ pixels: PixelBuffer, to size: PixelSize, _ watch: DecodingDeadline) throws(CacheError) -> PixelBuffer

  /// The part of this size, no larger than the picture, that draws the eye.
  func attention(in pixels: PixelBuffer, size: PixelSize) throws(CacheError) -> PixelRect
}
