public import CacheCore

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// An encoder that makes a file of an image or its first frame.
///
/// ```swift
/// let webp = try ImageEncoder(.webp, quality: 75).encode(image)
/// ```
///
/// The file contains no metadata of the original: no location, no camera, no profile (the pixels are sRGB).
///
/// An encoder also stores the images of a transform: see `ResourceTransform.image(_:scale:storedAs:)`.
public struct ImageEncoder: Hashable, Sendable {
  /// The file format: JPEG, PNG, WebP, and, if the engine supports them, AVIF, GIF and TIFF.
  public var format: ImageFormat
  /// The format of images with alpha; `nil` means ``format``.
  public var alphaFormat: ImageFormat?
  /// The quality from 1 (smallest file) to 100 (best image), for JPEG, WebP and AVIF. Its exact meaning depends on the
  /// codec.
  public var quality: Int
  /// Whether every pixel is preserved. WebP and AVIF support this, PNG always does it, and GIF does it with up to 256
  /// colors. WebP preserves visible pixels: where alpha is 0, libvips 8.14 lets the codec choose the colors that take
  /// the fewest bytes.
  public var isLossless = false
  /// The effort to find a smaller file, from 0 (fastest) to 9; `nil` means the codec's default.
  public var effort: Int?
  /// Whether an incomplete file can be shown coarsely: progressive JPEG, interlaced PNG.
  public var isProgressive = false
  /// The color behind an image with alpha in a format without alpha (JPEG).
  public var background = RGBA(255, 255, 255)
  /// The time limit for encoding.
  public var timeLimit: Duration = .seconds(60)

  /// Creates an encoder for a format.
  public init(_ format: ImageFormat, quality: Int = 80) {
    self.format = format
    self.quality = quality
  }

  /// Encodes an image synchronously on the caller's thread. If the task is cancelled, encoding stops.
  ///
  /// - Throws: `CacheError.Code.unsupported` if no engine writes the format, `.invalidConfiguration` if the quality,
  ///   the effort or the time limit is out of range, `.encodingFailed`, `.imageLimitExceeded` if encoding takes longer than
  ///   ``timeLimit``, and `.cancelled`.
  public func encode(_ image: DecodedImage) throws(CacheError) -> Data {
    try CacheError.require("quality", quality, in: 1...100)
    try CacheError.require("effort", effort, in: 0...9)
    try CacheError.require("timeLimit", timeLimit, in: .zero...)
    var settings = self
    settings.format = format(for: image)
    let watch = DecodingDeadline(ImageLimits { $0.time = timeLimit }, settings.format, work: "encoding")
    if let end = watch.end { throw end }
    let file = try ImageInspector.engine().encode(image.buffer, settings, watch)
    // Some codecs read all pixels first and then cannot be stopped.
    if let end = watch.end { throw end }
    return file
  }

  func format(for image: DecodedImage) -> ImageFormat {
    image.buffer.channels.hasAlpha ? alphaFormat ?? format : format
  }

  /// The formats of the encoder's files.
  var formats: Set<ImageFormat> { Set([format, alphaFormat ?? format]) }

  /// The settings as text, for cache keys.
  var parameters: String {
    let settings = [
      format.name, alphaFormat?.name ?? "", "\(quality)", isLossless ? "lossless" : "", effort.map { "effort \($0)" } ?? "",
      isProgressive ? "progressive" : "", "\(background.red),\(background.green),\(background.blue)",
      "\(timeLimit.components.seconds).\(timeLimit.components.attoseconds)",
    ]
    return settings.joined(separator: ";")
  }
}

extension ImageEncoder {
  /// JPEG: small, without alpha.
  public static let jpeg = ImageEncoder(.jpeg)
  /// PNG: preserves every pixel.
  public static let png = ImageEncoder(.png)
  /// WebP: small, with alpha. ImageIO cannot write it.
  public static let webp = ImageEncoder(.webp)
  /// AVIF: the smallest files, slow to make, and only if the engine can write it.
  public static let avif = ImageEncoder(.avif)
  /// JPEG for images without alpha. For images with alpha, WebP, or PNG on Apple platforms.
  public static let automatic: ImageEncoder = {
    var encoder = ImageEncoder(.jpeg)
    #if canImport(ImageIO)
    encoder.alphaFormat = .png
    #else
    encoder.alphaFormat = .webp
    #endif
    return encoder
  }()
}
