public import CacheCore

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Makes files of pictures: of the picture, or of its first frame.
///
/// ```swift
/// let webp = try ImageEncoder(.webp, quality: 75).encode(image)
/// ```
///
/// Nothing of the original file's metadata goes along: no place, no camera, no profile (the pixels are sRGB).
///
/// It is also what a transform's pictures are stored as: see `ResourceTransform.image(_:scale:storedAs:)`.
public struct ImageEncoder: Hashable, Sendable {
  /// JPEG, PNG, WebP, and AVIF, GIF, TIFF where the engine has them.
  public var format: ImageFormat
  /// The format of pictures with alpha; nil: that of all others.
  public var alphaFormat: ImageFormat?
  /// From 1, the smallest file, to 100, the best picture. For JPEG, WebP and AVIF; what a number means is each codec's own.
  public var quality: Int
  /// Whether every pixel is kept as it is. WebP and AVIF can, PNG always does, GIF does with up to 256 colours. WebP keeps what
  /// can be seen: where alpha is 0, libvips (8.14) lets the codec write the colours that take the fewest bytes.
  public var isLossless = false
  /// How long to look for a smaller file: from 0, at once, to 9. Nil: the codec's usual way.
  public var effort: Int?
  /// Whether the file can be shown coarsely before all of it is there: progressive JPEG, interlaced PNG.
  public var isProgressive = false
  /// What is seen behind a picture with alpha in a format that has none (JPEG).
  public var background = RGBA(255, 255, 255)
  /// How long encoding may take.
  public var timeLimit: Duration = .seconds(60)

  /// An encoder for a format.
  public init(_ format: ImageFormat, quality: Int = 80) {
    self.format = format
    self.quality = quality
  }

  /// A picture's file. Takes the time of encoding, on the caller's thread; a cancelled task's encoding ends.
  ///
  /// - Throws: `CacheError.Code.unsupported` when no engine here writes the format, `.invalidConfiguration` for a quality or an
  ///   effort that does not exist, `.encodingFailed`, `.imageLimitExceeded` when it takes longer than ``timeLimit``,
  ///   `.cancelled`.
  public func encode(_ image: DecodedImage) throws(CacheError) -> Data {
    guard (1...100).contains(quality) else {
      throw CacheError(.invalidConfiguration, reason: "a quality is 1 to 100, not \(quality)")
    }
    if let effort, !(0...9).contains(effort) {
      throw CacheError(.invalidConfiguration, reason: "an effort is 0 to 9, not \(effort)")
    }
    var settings = self
    settings.format = format(for: image)
    let watch = DecodingDeadline(ImageLimits { $0.time = timeLimit }, settings.format, work: "encoding")
    if let end = watch.end { throw end }
    let file = try ImageInspector.engine().encode(image.buffer, settings, watch)
    // Some codecs ask for all pixels first, and then can't be stopped.
    if let end = watch.end { throw end }
    return file
  }

  func format(for image: DecodedImage) -> ImageFormat {
    image.buffer.channels.hasAlpha ? alphaFormat ?? format : format
  }

  /// What its files may be.
  var formats: Set<ImageFormat> { Set([format, alphaFormat ?? format]) }

  /// In text, as it stands in cache keys.
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
  /// PNG: every pixel as it is.
  public static let png = ImageEncoder(.png)
  /// WebP: small, with alpha. ImageIO does not write it.
  public static let webp = ImageEncoder(.webp)
  /// AVIF: smallest, and slow to make; where the engine writes it.
  public static let avif = ImageEncoder(.avif)
  /// JPEG for pictures without alpha; WebP for those with it, PNG on Apple's platforms.
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
