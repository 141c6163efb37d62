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
public struct ImageDecoder: ResourceDecoder {
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
      retainsOriginal ? "original" : "", limits.parameters,
    ]
    return ComponentID(Self.self, parameters: settings.joined(separator: ";"))
  }

  public func decode(_ data: Data, _ metadata: StoredMetadata) throws(CacheError) -> DecodedImage {
    try decode(data, url: metadata.request.absoluteURL)
  }

  /// Decodes an image synchronously on the caller's thread. If the task is cancelled, decoding stops.
  ///
  /// - Throws: `CacheError.Code.decodingFailed` with the format and the reason if the bytes are not an image or are
  ///   damaged, `.imageLimitExceeded` if the image exceeds ``limits``, `.unsupported` if no engine reads the format,
  ///   and `.cancelled`.
  public func decode(_ data: Data, url: URL? = nil) throws(CacheError) -> DecodedImage {
    let reading = try ImageInspector.read(data, limits)
    let (engine, header, watch) = (reading.engine, reading.header, reading.watch)
    let target = size?.size(of: header.size) ?? header.size
    // An enlarging size rule must respect the limits too.
    var targetHeader = header
    targetHeader.size = target
    try limits.check(targetHeader)
    try limits.check(reading.drawing?.work, header.size, in: target)

    // The first frame does not depend on the others.
    let isCut = reading.isCut && (!firstFrameOnly || !header.isAnimated)
    if isCut, !allowsPartial { throw CacheError(.decodingFailed, reason: "\(header.format): \(reading.damage)") }
    if header.isAnimated, !firstFrameOnly {
      let source = try engine.frames(of: reading.file, header, size: target, partial: allowsPartial, limits: limits)
      return DecodedImage(
        buffer: try source.frame(0), header: header, scale: scale, url: url, original: data, isPartial: isCut,
        frames: source)
    }
    do throws(CacheError) {
      let buffer = try engine.pixels(of: reading.file, header, size: target, partial: false, watch: watch)
      return image(buffer, header, data, url, isPartial: isCut)
    } catch  where allowsPartial && error.code == .decodingFailed {
      let buffer = try engine.pixels(of: reading.file, header, size: target, partial: true, watch: watch)
      return image(buffer, header, data, url, isPartial: true)
    }
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
