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
  ///   - fast: Whether a codec shrinks as far as it can: see ``ImageDecoder/fastShrinkOnLoad``.
  ///   - watch: The deadline, checked repeatedly during decoding.
  func pixels(
    of data: Data, _ header: ImageHeader, size: PixelSize, partial: Bool, fast: Bool, watch: DecodingDeadline
  ) throws(CacheError) -> PixelBuffer

  /// Decodes a still image for the screen, or returns `nil` if the engine has no shorter way to do it than ``pixels``.
  func screenRows(
    of data: Data, _ header: ImageHeader, size: PixelSize, watch: DecodingDeadline
  ) throws(CacheError) -> ScreenRows?

  /// The bytes that decoding needs for each pixel of the result, in addition to the codec's pixels and the result.
  var drawingBytesPerPixel: Int { get }

  /// Returns the frames of an animated image.
  func frames(
    of data: Data, _ header: ImageHeader, size: PixelSize, partial: Bool, limits: ImageLimits
  ) throws(CacheError) -> any FrameSource

  /// Returns whether the engine writes a format.
  func canEncode(_ format: ImageFormat) -> Bool

  /// Encodes pixels as a file.
  func encode(_ pixels: PixelBuffer, _ settings: ImageEncoder, _ watch: DecodingDeadline) throws(CacheError) -> Data

  /// Resizes pixels to exactly the given size.
  func resize(_ pixels: PixelBuffer, to size: PixelSize, _ watch: DecodingDeadline) throws(CacheError) -> PixelBuffer

  /// Returns the most salient part of the given size, which is at most that of the image.
  func attention(in pixels: PixelBuffer, size: PixelSize) throws(CacheError) -> PixelRect
}

extension ImageEngine {
  func screenRows(
    of data: Data, _ header: ImageHeader, size: PixelSize, watch: DecodingDeadline
  ) throws(CacheError) -> ScreenRows? { nil }

  var drawingBytesPerPixel: Int { 0 }
}

/// The rows of an image in the pixel format of the screen: blue, green, red and alpha, premultiplied, in sRGB.
package struct ScreenRows: Sendable {
  /// The width and height of the image.
  package let size: PixelSize
  /// Whether every pixel is opaque.
  package let isOpaque: Bool
  /// The rows, whose width is a multiple of 16 pixels. The pixels beyond the image are zero.
  package let rows: PixelBuffer

  /// Creates rows, which `fill` writes. Returns `nil` if there is not enough memory.
  package init?(size: PixelSize, isOpaque: Bool, fill: (UnsafeMutableRawBufferPointer) -> Void) {
    let (width, overflows) = size.width.addingReportingOverflow(15)
    guard !overflows, let rows = PixelBuffer(size: PixelSize(width & ~15, size.height), channels: .rgba, fill: fill) else {
      return nil
    }
    self.size = size
    self.isOpaque = isOpaque
    self.rows = rows
  }
}

/// A source of the frames of an animated image, decoded one by one.
protocol FrameSource: Sendable {
  /// Returns one frame, composed with the frames before it.
  func frame(_ index: Int) throws(CacheError) -> PixelBuffer
  /// The memory that the source uses in addition to the original, in bytes.
  var cost: Int { get }
}

/// The time limit and cancellation check of image work. The time for which the device sleeps does not count.
struct DecodingDeadline {
  private let deadline: SuspendingClock.Instant
  private let limits: ImageLimits
  private let format: ImageFormat
  private let work: String

  /// The current time. Tests replace it.
  @TaskLocal static var now: @Sendable () -> SuspendingClock.Instant = { .now }

  /// - Parameter work: The name of the work, for the error's reason.
  init(_ limits: ImageLimits, _ format: ImageFormat, work: String = "decoding") {
    self.limits = limits
    self.format = format
    self.work = work
    deadline = Self.now() + limits.time
  }

  /// The error that ends the work, or `nil` while the work may continue.
  var end: CacheError? {
    if Task.isCancelled { return .cancelled }
    return Self.now() >= deadline ? limits.exceededTime(format, work) : nil
  }
}
