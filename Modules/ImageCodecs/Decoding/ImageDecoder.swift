public import CacheCore

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Makes pictures of bytes: upright, in sRGB, no larger than asked for, within limits.
///
/// ```swift
/// let thumbnail = try ImageDecoder(size: .fit(400, 400)).decode(bytes)
/// let resource = try await manager.load(url, as: .image(size: .fit(400, 400)))  // cached as such
/// ```
///
/// Where a codec can decode to a smaller size (JPEG, WebP, SVG), the pixels of the full size never come into being. What it holds
/// in full all the same (a progressive JPEG's coefficients, a lossless WebP, the pictures that an SVG carries) counts in
/// ``workingMemory(for:_:)``.
public struct ImageDecoder: ResourceDecoder {
  /// How large the picture becomes; nil: as large as it is.
  public var size: ImageSizing?
  /// How many of its pixels make a point.
  public var scale: Double = 1
  /// Whether only the first frame of an animated image is decoded. Otherwise all frames are, each when it is read.
  public var firstFrameOnly = false
  /// Whether a file that is cut short or damaged is decoded as far as it goes. It is an error otherwise.
  public var allowsPartial = false
  /// Whether ``DecodedImage/original`` has the bytes. Animated pictures always do.
  public var keepsOriginal = false
  /// What is refused.
  public var limits = ImageLimits.standard

  /// A decoder with the usual settings.
  public init(size: ImageSizing? = nil, scale: Double = 1) {
    self.size = size
    self.scale = scale
  }

  /// A decoder with the usual settings, but for what `change` sets.
  public init(_ change: (inout ImageDecoder) -> Void) { change(&self) }

  public var id: ComponentID {
    let settings = [
      size.map { "\($0)" } ?? "full", "@\(scale)", firstFrameOnly ? "first" : "all", allowsPartial ? "partial" : "whole",
      keepsOriginal ? "original" : "", limits.parameters,
    ]
    return ComponentID(Self.self, parameters: settings.joined(separator: ";"))
  }

  public func decode(_ data: Data, _ metadata: StoredMetadata) throws(CacheError) -> DecodedImage {
    try decode(data, url: metadata.request.absoluteURL)
  }

  /// Decodes bytes. Takes the time of decoding, on the caller's thread; a cancelled task's decoding ends.
  ///
  /// - Throws: `CacheError.Code.decodingFailed` with format and reason when they are no picture, or a damaged one;
  ///   `.imageLimitExceeded` when it is beyond ``limits``; `.unsupported` when no engine here reads its format; `.cancelled`.
  public func decode(_ data: Data, url: URL? = nil) throws(CacheError) -> DecodedImage {
    let reading = try ImageInspector.read(data, limits)
    let (engine, header, watch) = (reading.engine, reading.header, reading.watch)
    let target = size?.size(of: header.size) ?? header.size
    // A sizing that enlarges must not get past the limits either.
    var asked = header
    asked.size = target
    try limits.check(asked)

    // Whose first frame alone is wanted needs no others.
    let isCut = reading.isCut && (!firstFrameOnly || !header.isAnimated)
    if isCut, !allowsPartial { throw CacheError(.decodingFailed, reason: "\(header.format): \(reading.damage)") }
    if header.isAnimated, !firstFrameOnly {
      let source = try engine.frames(of: data, header, size: target, partial: allowsPartial, limits: limits)
      return DecodedImage(
        buffer: try source.frame(0), header: header, scale: scale, url: url, original: data, isPartial: isCut,
        frames: source)
    }
    do throws(CacheError) {
      let buffer = try engine.pixels(of: data, header, size: target, partial: false, watch: watch)
      return image(buffer, header, data, url, isPartial: isCut)
    } catch  where allowsPartial && error.code == .decodingFailed {
      let buffer = try engine.pixels(of: data, header, size: target, partial: true, watch: watch)
      return image(buffer, header, data, url, isPartial: true)
    }
  }

  public func cost(of value: DecodedImage) -> Int { value.cost }

  private func image(_ buffer: PixelBuffer, _ header: ImageHeader, _ data: Data, _ url: URL?, isPartial: Bool) -> DecodedImage {
    DecodedImage(
      buffer: buffer, header: header, scale: scale, url: url, original: keepsOriginal ? data : nil, isPartial: isPartial,
      frames: nil)
  }
}
