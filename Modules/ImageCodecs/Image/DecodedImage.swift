public import CacheCore

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A picture as pixels: upright, sRGB, no larger than was asked for. Copies share their pixels.
///
/// ```swift
/// let image = try ImageDecoder(size: .fit(400, 400)).decode(bytes)
/// print(image.size, image.frameCount, image.cost)  // 400 × 267, 1, 320400
/// print(image.pixels[0, 0])                        // one pixel, RGBA
/// ```
public struct DecodedImage: Sendable {
  /// Width and height of its pixels.
  public var size: PixelSize { buffer.size }
  /// How many of its pixels make a point: 2 on a screen of that scale.
  public var scale: Double
  /// What its file said: the format, the size before it was made smaller, the colours.
  public let header: ImageHeader
  /// Where it came from.
  public var url: URL?
  /// The bytes it was decoded from, where they were kept: for animated pictures, whose other frames are made of them, and when
  /// ``ImageDecoder/keepsOriginal`` says so.
  public let original: Data?
  /// Whether the file is cut short or damaged, and this is what could be decoded: see ``ImageDecoder/allowsPartial``.
  public let isPartial: Bool

  /// The pixels of the image, or of its first frame, with the channels in which they are held.
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

  /// A picture of pixels of one's own: it stands still.
  public init(_ pixels: PixelBuffer, scale: Double = 1, url: URL? = nil) {
    let header = ImageHeader(
      format: .png, size: pixels.size, hasAlpha: pixels.channels.hasAlpha,
      colorSpace: pixels.channels.rawValue < 3 ? ImageHeader.gray : ImageHeader.sRGB)
    self.init(buffer: pixels, header: header, scale: scale, url: url, original: nil, isPartial: false, frames: nil)
  }

  /// The format of its file.
  public var format: ImageFormat { header.format }
  /// Width in points.
  public var pointWidth: Double { Double(size.width) / scale }
  /// Height in points.
  public var pointHeight: Double { Double(size.height) / scale }
  /// The color space of the file: see ``ImageHeader/colorSpace``.
  public var colorSpace: String { header.colorSpace }
  /// How many frames it has here: 1 for a picture that stands still, or of which the first frame was asked for.
  public var frameCount: Int { frames == nil ? 1 : header.frameCount }
  /// How long each frame is shown; empty where there is one.
  public var delays: [Duration] { frames == nil ? [] : header.delays }
  /// How often its frames are shown; nil: for ever.
  public var loopCount: Int? { header.loopCount }

  /// What it weighs in memory, in bytes: the pixels that are there, and the bytes it was decoded from, where it has them. A frame
  /// that is made on demand is its caller's.
  public var cost: Int { buffer.byteCount + (original?.count ?? 0) + (frames?.cost ?? 0) }

  /// The pixels of the picture, or of its first frame, as RGBA, 8 bits a channel, straight alpha. Those of a picture without
  /// alpha are held in three bytes or one, and widened at each call; where there is no room for that, they are as they are held,
  /// and ``PixelBuffer/channels`` says so.
  public var pixels: PixelBuffer { buffer.rgba }

  /// The pixels of one frame, made when they are asked for, as RGBA. In order is cheapest: each frame builds upon the ones before
  /// it, and going back begins anew.
  ///
  /// Takes the time of decoding: not for the main thread.
  ///
  /// - Throws: `CacheError.Code.misuse` where there is no such frame, `.decodingFailed` where the file is damaged there,
  ///   `.imageLimitExceeded` when making it, with all that lie between it and the last one made, takes longer than
  ///   `ImageLimits.time` (asked again, it goes on from there) or needs more memory than there is, `.cancelled`.
  public func pixels(ofFrame index: Int) throws(CacheError) -> PixelBuffer {
    guard index >= 0, index < frameCount else {
      throw CacheError(.misuse, reason: "\(format): there is no frame \(index) among \(frameCount)")
    }
    guard index > 0, let frames else { return try buffer.widened() }
    return try frames.frame(index).widened()
  }
}
