public import CacheCore

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// What a picture's file says about it, read without making pixels.
///
/// ```swift
/// let header = try ImageHeader(of: bytes)
/// print(header.format, header.size, header.frameCount)  // JPEG 1800 × 1200 1
/// ```
public struct ImageHeader: Hashable, Sendable {
  /// Told by the first bytes.
  public var format: ImageFormat
  /// As it is shown: the orientation is applied. Of one frame.
  public var size: PixelSize
  /// How it is stored.
  public var orientation: ImageOrientation
  /// How many pictures follow each other in time; 1: it stands still.
  public var frameCount: Int
  /// How long each frame is shown; empty where it stands still. Delays of up to 10 ms are 100 ms, as browsers take them.
  public var delays: [Duration]
  /// How often the frames are shown; nil: for ever.
  public var loopCount: Int?
  /// Whether there is an alpha channel.
  public var hasAlpha: Bool
  /// The color space of the file: the description of an embedded profile (ICC.1), such as `Display P3`, or `sRGB`, `grey` or
  /// `CMYK`. Decoded pixels are always sRGB, and grey ones have sRGB's curve.
  public var colorSpace: String
  /// Bits of one number, one channel's of one pixel: 8, 16.
  public var bitDepth: Int
  /// The length of the file in bytes.
  public var byteCount: Int

  /// A header of its parts: for fakes in tests.
  public init(
    format: ImageFormat, size: PixelSize, orientation: ImageOrientation = .up, frameCount: Int = 1, delays: [Duration] = [],
    loopCount: Int? = nil, hasAlpha: Bool = false, colorSpace: String = "sRGB", bitDepth: Int = 8, byteCount: Int = 0
  ) {
    self.format = format
    self.size = size
    self.orientation = orientation
    self.frameCount = frameCount
    self.delays = delays
    self.loopCount = loopCount
    self.hasAlpha = hasAlpha
    self.colorSpace = colorSpace
    self.bitDepth = bitDepth
    self.byteCount = byteCount
  }

  /// The color spaces of files without a profile.
  static let (sRGB, gray, cmyk) = ("sRGB", "grey", "CMYK")

  /// Reads the header of a file.
  ///
  /// - Throws: `CacheError.Code.decodingFailed` when it is no picture or its header is damaged, `.imageLimitExceeded` when it is
  ///   beyond `limits`, and `.unsupported` when no engine here reads it.
  public init(of data: Data, limits: ImageLimits = .standard) throws(CacheError) {
    self = try ImageInspector.read(data, limits).header
  }

  /// Whether frames follow each other.
  public var isAnimated: Bool { frameCount > 1 }

  /// A delay as browsers take it: up to 10 ms means that nobody has thought about it.
  static func delay(_ stated: Duration) -> Duration { stated <= .milliseconds(10) ? .milliseconds(100) : stated }
}
