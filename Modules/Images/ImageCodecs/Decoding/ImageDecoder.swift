public import CacheCore

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A decoder that makes upright sRGB images, no larger than requested, within limits.
///
/// ```swift
/// let thumbnail = try ImageDecoder(size: .fit(400, 400)).decode(bytes)
/// let resource = try await manager.load(url, as: .image(size: .fit(400, 400)))  // cached in this size
/// ```
///
/// JPEG, WebP and SVG codecs can decode directly to a smaller size, without the pixels of the full size. The data that
/// they still store in full size counts in ``workingMemory(for:_:)``: the coefficients of a progressive JPEG, a
/// lossless WebP, and the images in an SVG.
public struct ImageDecoder: ResourceDecoder, Codable {
  /// The size rule; `nil` keeps the size of the file.
  public var size: ImageSizing?
  /// The number of pixels per point.
  public var scale: Double = 1
  /// Whether only the first frame of an animated image is decoded. By default, every frame is decoded when it is read.
  public var firstFrameOnly = false
  /// Whether a truncated or damaged file is decoded as far as possible. By default, it is an error.
  public var allowsPartial = false
  /// Whether ``DecodedImage/original`` contains the bytes of the file. For animated images, it always does.
  public var retainsOriginal = false
  /// Whether the JPEG codec of libvips shrinks as far as it can, so that less is left to resampling. By default at least a factor
  /// of two is left, and with this setting at least 1.25. What the codec blurs is sharpened again.
  ///
  /// A JPEG of 4000 × 3000 pixels becomes a WebP of 400 × 300 and quality 80 in about 12 % less time. The difference to an image
  /// that was decoded in full size grows by 0.3 dB or less. It grows by up to 6 dB before the WebP is encoded, so leave the
  /// setting off for lossless results.
  public var fastShrinkOnLoad = false
  /// The limits beyond which an image is refused.
  public var limits = ImageLimits.standard

  /// Creates a decoder with default settings.
  public init(size: ImageSizing? = nil, scale: Double = 1) {
    self.size = size
    self.scale = scale
  }

  /// Creates a decoder and applies `change` to its default settings.
  public init(_ change: (inout ImageDecoder) -> Void) { change(&self) }

  public var id: ComponentID {
    let settings = [
      size.map { "\($0)" } ?? "full", "@\(scale)", firstFrameOnly ? "first" : "all", allowsPartial ? "partial" : "whole",
      retainsOriginal ? "original" : "", fastShrinkOnLoad ? "fast" : "", limits.parameters,
    ]
    return ComponentID(Self.self, parameters: settings.joined(separator: ";"))
  }

  public func decode(_ data: Data, _ metadata: StoredMetadata) throws(CacheError) -> DecodedImage {
    try decode(data, url: metadata.request.absoluteURL)
  }

  /// Decodes an image synchronously on the caller's thread. If the task is cancelled, decoding stops.
  ///
  /// - Throws: `CacheError.Code.decodingFailed` with the format and the reason if the bytes are not an image or are
  ///   damaged, `.imageLimitExceeded` if the image exceeds ``limits`` or the process has not enough memory for it,
  ///   `.unsupported` if no engine reads the format, and `.cancelled`.
  public func decode(_ data: Data, url: URL? = nil) throws(CacheError) -> DecodedImage {
    let checked = try check(data)
    return try decode(data, checked, url: url)
  }

  private func decode(_ data: Data, _ checked: CheckedFile, url: URL?) throws(CacheError) -> DecodedImage {
    let (reading, target, isCut) = checked
    let (engine, header, watch) = (reading.engine, reading.header, reading.watch)
    if header.isAnimated, !firstFrameOnly {
      let source = try engine.frames(of: reading.file, header, size: target, partial: allowsPartial, limits: limits)
      return DecodedImage(
        buffer: try source.frame(0), header: header, scale: scale, url: url, original: data, isPartial: isCut,
        frames: source)
    }
    do throws(CacheError) {
      let buffer = try engine.pixels(of: reading.file, header, size: target, partial: false, fast: fastShrinkOnLoad, watch: watch)
      return image(buffer, header, data, url, isPartial: isCut)
    } catch  where allowsPartial && error.code == .decodingFailed {
      let buffer = try engine.pixels(of: reading.file, header, size: target, partial: true, fast: fastShrinkOnLoad, watch: watch)
      return image(buffer, header, data, url, isPartial: true)
    }
  }

  /// An image that was decoded for the screen.
  package enum ScreenImage {
    /// A still image, decoded without straight pixels in between.
    case rows(ScreenRows)
    /// An animated image, a partial one, or an image of an engine that has only straight pixels.
    case image(DecodedImage)
  }

  /// Decodes an image for the screen.
  ///
  /// - Throws: The errors of ``decode(_:url:)``.
  package func decodeForScreen(_ data: Data, url: URL?) throws(CacheError) -> ScreenImage {
    let checked = try check(data)
    let (reading, target, _) = checked
    if !allowsPartial, !reading.header.isAnimated || firstFrameOnly,
      let rows = try reading.engine.screenRows(of: reading.file, reading.header, size: target, watch: reading.watch)
    {
      return .rows(rows)
    }
    return .image(try decode(data, checked, url: url))
  }

  private typealias CheckedFile = (reading: ImageInspector.Reading, target: PixelSize, isCut: Bool)

  /// Checks an image. Returns its properties, the size of the result, and whether the file is truncated.
  private func check(_ data: Data) throws(CacheError) -> CheckedFile {
    let reading = try ImageInspector.read(data, limits)
    let header = reading.header
    let target = size?.size(of: header.size) ?? header.size
    // An enlarging size rule must respect the limits too.
    var targetHeader = header
    targetHeader.size = target
    try limits.check(targetHeader)
    try limits.check(reading.drawing?.work, header.size, in: target)

    // The first frame does not depend on the others.
    let isCut = reading.isCut && (!firstFrameOnly || !header.isAnimated)
    if isCut, !allowsPartial { throw CacheError(.decodingFailed, reason: "\(header.format): \(reading.damage)") }
    try checkMemory(for: reading, target)
    return (reading, target, isCut)
  }

  /// Refuses an image that the process has no memory for, because the system would end the process. An eighth is left for other
  /// work. The bound is the least that any file of this size needs: how much more an engine needs is not known for each format.
  private func checkMemory(for reading: ImageInspector.Reading, _ target: PixelSize) throws(CacheError) {
    guard let available = HostResources.available else { return }
    let least = Int(clamping: Double(target.area) * Double(max(reading.engine.drawingBytesPerPixel, 1)))
    guard least > available / 8 * 7 else { return }
    throw CacheError(
      .imageLimitExceeded,
      reason: "\(reading.header.format): \(target) pixels need \(least) bytes of memory, and the process may use \(available); "
        + "request a smaller size")
  }

  public func cost(of value: DecodedImage) -> Int { value.cost }

  /// Discards what libvips and drawing libraries write to standard error, in the whole process.
  ///
  /// Call it at the start of a program that owns its process and its standard error. It sets the log writer of GLib
  /// (`g_log_set_writer_func`). GLib ends a process that sets another one, before or after. Without libvips, this function
  /// has no effect.
  public static func discardLibraryMessages() {
    #if VIPS && os(Linux)
    VIPSLibrary.discardsMessages
    #endif
  }

  private func image(_ buffer: PixelBuffer, _ header: ImageHeader, _ data: Data, _ url: URL?, isPartial: Bool) -> DecodedImage {
    DecodedImage(
      buffer: buffer, header: header, scale: scale, url: url, original: retainsOriginal ? data : nil, isPartial: isPartial,
      frames: nil)
  }
}

extension ImageDecoder {
  /// The memory that decoding needs, estimated from the header. It includes the pixels of the result and the pixels
  /// that the codec decodes before it shrinks them. It also includes data that a codec stores in full size: the
  /// coefficients of a progressive JPEG, a lossless WebP, the planes of an AVIF, and the elements and images of an
  /// SVG. The result is 0 if the data is not an image.
  public func workingMemory(for data: Data, _ metadata: StoredMetadata) -> Int {
    workingMemory(for: data)?.bytes ?? 0
  }

  /// Returns the header, and the memory as in ``workingMemory(for:_:)``, or `nil` if the data is refused.
  package func workingMemory(for data: Data) -> (header: ImageHeader, bytes: Int)? {
    guard let reading = try? ImageInspector.read(data, limits, forDecoding: false) else { return nil }
    let header = reading.header
    let target = size?.size(of: header.size) ?? header.size
    var targetHeader = header
    targetHeader.size = target
    // A refused image needs no memory.
    guard (try? limits.check(targetHeader)) != nil else { return nil }
    let channels = (header.colorSpace == ImageHeader.gray ? 1 : 3) + (header.hasAlpha ? 1 : 0)
    let decoded = Double(header.size.area) / Self.shrink(from: header, to: target) * Double(max(header.bitDepth / 8, 1))
    // The canvas, a copy of it, and one frame.
    let frames = header.frameCount > 1 ? Double(header.size.area) * 12 : 0
    // Each layer of a drawing has its own pixels.
    let layers = reading.drawing.map { Double(target.area) * 4 * $0.work.layers } ?? 0
    let drawing = Double(target.area) * Double(reading.engine.drawingBytesPerPixel)
    let pixels = layers + drawing + (decoded + (target == header.size ? 0 : Double(target.area))) * Double(channels)
    return (header, Int(clamping: pixels + frames + Self.heldInFull(data, reading)))
  }

  /// The bytes that a codec stores in full size, whatever the target size.
  private static func heldInFull(_ data: Data, _ reading: ImageInspector.Reading) -> Double {
    let header = reading.header
    let area = Double(header.size.area)
    return switch header.format {
    case .jpeg: Double(JPEGCoefficients.byteCount(data))
    case .webp: header.isAnimated ? 0 : area * Double(WebPPlanes.bytesPerPixel(data))
    // The decoder's planes and a copy of them. Most files store chroma at half the size in both directions.
    case .avif, .heic: area * 3 * Double(max(header.bitDepth / 8, 1))
    case .svg: reading.drawing?.memory ?? 0
    default: 0
    }
  }

  /// The factor by which a codec shrinks each side while it decodes.
  private static func shrink(from header: ImageHeader, to target: PixelSize) -> Double {
    let side = min(
      Double(header.size.width) / Double(max(target.width, 1)), Double(header.size.height) / Double(max(target.height, 1)))
    switch header.format {
    case .jpeg: return [64, 16, 4].first { $0 <= side * side } ?? 1
    case .webp, .svg: return max(side * side, 1)
    default: return 1
    }
  }
}
