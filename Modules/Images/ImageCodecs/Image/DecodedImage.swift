public import CacheCore

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A decoded image: upright, in sRGB, no larger than requested. Copies share their pixels.
///
/// ```swift
/// let image = try ImageDecoder(size: .fit(400, 400)).decode(bytes)
/// print(image.size, image.frameCount, image.cost)  // 400 × 267, 1, 320400
/// print(image.pixels[0, 0])                        // one pixel, RGBA
/// ```
public struct DecodedImage: Sendable {
  /// The size in pixels.
  public var size: PixelSize { buffer.size }
  /// The number of pixels per point: 2 on a screen of that scale.
  public var scale: Double
  /// The header of the file: the format, the size before resizing, the colors.
  public let header: ImageHeader
  /// The URL of the image.
  public var url: URL?
  /// The bytes of the file. They are present for animated images, whose other frames are decoded from them, and if
  /// ``ImageDecoder/retainsOriginal`` is set.
  public let original: Data?
  /// Whether the file is truncated or damaged and this is the decodable part: see ``ImageDecoder/allowsPartial``.
  public let isPartial: Bool

  /// The pixels of the image or its first frame, with the channels in which they are stored.
  package let buffer: PixelBuffer
  let frames: (any FrameSource)?

  init(
    buffer: PixelBuffer, header: ImageHeader, scale: Double, url: URL?, original: Data?, isPartial: Bool,
    frames: (any FrameSource)?
  ) {
    self.buffer = buffer
    self.header = header
    self.scale = scale
    self.url = url
    self.original = original
    self.isPartial = isPartial
    self.frames = frames
  }

  /// Creates a still image from pixels.
  public init(_ pixels: PixelBuffer, scale: Double = 1, url: URL? = nil) {
    let header = ImageHeader(
      format: .png, size: pixels.size, hasAlpha: pixels.channels.hasAlpha,
      colorSpace: pixels.channels.rawValue < 3 ? ImageHeader.gray : ImageHeader.sRGB)
    self.init(buffer: pixels, header: header, scale: scale, url: url, original: nil, isPartial: false, frames: nil)
  }

  /// Creates a still image from pixels that another process has decoded.
  package init(_ pixels: PixelBuffer, header: ImageHeader, scale: Double, url: URL?, original: Data?, isPartial: Bool) {
    self.init(buffer: pixels, header: header, scale: scale, url: url, original: original, isPartial: isPartial, frames: nil)
  }

  /// The format of the file.
  public var format: ImageFormat { header.format }
  /// The width in points.
  public var pointWidth: Double { Double(size.width) / scale }
  /// The height in points.
  public var pointHeight: Double { Double(size.height) / scale }
  /// The color space of the file: see ``ImageHeader/colorSpace``.
  public var colorSpace: String { header.colorSpace }
  /// The number of frames: 1 for a still image, or if only the first frame was decoded.
  public var frameCount: Int { frames == nil ? 1 : header.frameCount }
  /// The duration of each frame; empty for a still image.
  public var delays: [Duration] { frames == nil ? [] : header.delays }
  /// The number of times the frames are shown; `nil` means forever.
  public var loopCount: Int? { header.loopCount }

  /// The memory of the image in bytes: its pixels and, if present, the bytes of the file. Frames that callers decode do
  /// not count.
  public var cost: Int { buffer.byteCount + (original?.count ?? 0) + (frames?.cost ?? 0) }

  /// The pixels of the image or its first frame as RGBA, 8 bits per channel, straight alpha. Images without alpha are
  /// stored with three bytes or one byte per pixel and converted at each call. If there is not enough memory, the
  /// pixels are returned unconverted: see ``PixelBuffer/channels``.
  public var pixels: PixelBuffer { buffer.rgba }

  /// Decodes one frame as RGBA. Reading in order is cheapest: each frame builds on the frames before it, and going back
  /// restarts from the first frame.
  ///
  /// This method decodes synchronously, so do not call it on the main thread.
  ///
  /// - Throws: `CacheError.Code.misuse` if the frame does not exist, `.decodingFailed` if the file is damaged there,
  ///   and `.cancelled`. `.imageLimitExceeded` if decoding needs too much memory or takes longer than
  ///   `ImageLimits.time`, including the frames since the last decoded one. After a timeout, the next call continues
  ///   from there.
  public func pixels(ofFrame index: Int) throws(CacheError) -> PixelBuffer {
    guard index >= 0, index < frameCount else {
      throw CacheError(.misuse, reason: "\(format): no frame \(index), the image has \(frameCount)")
    }
    guard index > 0, let frames else { return try buffer.widened() }
    return try frames.frame(index).widened()
  }
}
