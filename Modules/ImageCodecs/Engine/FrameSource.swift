internal import CacheCore

/// Makes the frames of an animated picture, one by one.
protocol FrameSource: Sendable {
  /// One frame, composed with what is left of those before it.
  func frame(_ index: Int) throws(CacheError) -> PixelBuffer
  /// What it holds in memory beside the original, in bytes.
  var cost: Int { get }
}
