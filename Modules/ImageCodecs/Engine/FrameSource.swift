internal import CacheCore

/// A source of the frames of an animated image, decoded one by one.
protocol FrameSource: Sendable {
  /// Returns one frame, composed with the frames before it.
  func frame(_ index: Int) throws(CacheError) -> PixelBuffer
  /// The memory that the source uses in addition to the original, in bytes.
  var cost: Int { get }
}
