public import CacheCore

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// An encoder that makes a file of an image or its first frame.
///
/// ```swift
/// let file = try ImageEncoder(.jpeg, quality: 75).encode(image)
/// ```
///
/// The file contains no metadata of the original: no location, no camera, no profile (the pixels are sRGB).
///
/// An encoder also stores the images of a transform: see `ResourceTransform.image(_:scale:storedAs:)`. If the engine does not
/// write the format, a stored image is a JPEG, or a PNG if it has alpha or the encoder is lossless. ``encode(_:)`` then throws
/// an error instead. If libvips has no codec for AVIF, no image is stored as AVIF or in its place.
public struct ImageEncoder: Hashable, Sendable {
  /// The file format. Every engine writes JPEG, PNG, GIF and TIFF. libvips also writes WebP, and ImageIO also HEIC. Both write
  /// AVIF if the system has a codec for it.
  public var format: ImageFormat
  /// The format of images with alpha; `nil` means ``format``.
  public var alphaFormat: ImageFormat?
  /// The quality from 1 (smallest file) to 100 (best image), for JPEG, WebP, HEIC and AVIF. Its exact meaning depends on the
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

  /// The encoder that stores an image: this one, or one of a format that the engine writes.
  ///
  /// - Parameter isWritable: Whether the engine writes a format.
  func storing(_ image: DecodedImage, _ isWritable: (ImageFormat) -> Bool) -> ImageEncoder {
    var encoder = self
    let hasAlpha = image.buffer.channels.hasAlpha
    let format = format(for: image)
    encoder.format = isWritable(format) ? format : hasAlpha || isLossless ? .png : .jpeg
    encoder.alphaFormat = nil
    return encoder
  }

  /// The encoder that stores an image with the platform's engine. Without an engine, it is this one, whose error says so.
  private func storing(_ image: DecodedImage) -> ImageEncoder {
    guard let engine = try? ImageInspector.engine() else { return self }
    return storing(image, engine.canEncode)
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
  /// WebP: small, with alpha. ImageIO does not write it.
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

extension ImageEncoder: ResourceEncoder {
  public var id: ComponentID { ComponentID(Self.self, parameters: parameters) }

  /// Returns `false` if later loads would lose information: the frames of an animated image, alpha that the format
  /// lacks (JPEG) or nearly lacks (GIF), or the rest of a partially decoded image.
  public func canEncode(_ value: DecodedImage) -> Bool {
    guard value.frameCount == 1, !value.isPartial else { return false }
    return !value.buffer.channels.hasAlpha || ![.jpeg, .gif].contains(storing(value).format)
  }

  /// Returns the file to store. It is a JPEG or PNG if the engine does not write the encoder's format.
  ///
  /// - Throws: The errors of ``encode(_:)``, and `CacheError.Code.encodingFailed` if the file exceeds the decoder's
  ///   limit (``ImageLimits/standard``).
  public func encode(_ value: DecodedImage, _ metadata: StoredMetadata) throws(CacheError) -> Data {
    let encoder = storing(value)
    let (file, limit) = (try encoder.encode(value), ImageLimits.standard.bytes)
    guard file.count <= limit else {
      throw CacheError(.encodingFailed, reason: "\(encoder.format): the file has \(file.count) bytes, the limit is \(limit)")
    }
    return file
  }
}

extension ImageEncoder {
  /// Whether the platform's engine writes a format. Without an engine it is `true`, and the error of encoding says what is
  /// missing.
  package static func isWritten(_ format: ImageFormat) -> Bool { (try? ImageInspector.engine())?.canEncode(format) ?? true }

  /// Loads the codecs of the formats that the engine writes, so that the first image does not wait for them.
  package static func warmUp() {
    guard let pixels = PixelBuffer(size: PixelSize(16, 16), channels: .rgb, fill: { _ in }) else { return }
    for format in [ImageFormat.jpeg, .png, .webp, .avif] {
      guard let file = try? ImageEncoder(format).encode(DecodedImage(pixels)) else { continue }
      _ = try? ImageDecoder(size: .fit(8, 8)).decode(file)
    }
  }

  /// The name and version of the platform's codecs. Other versions may make other bytes of the same image.
  package static var codecVersion: String {
    #if VIPS && os(Linux)
    "libvips \(VIPSLibrary.version)"
    #else
    "system"
    #endif
  }
}
