public import CacheCore

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// The properties of an image file, read without decoding pixels.
///
/// ```swift
/// let header = try ImageHeader(of: bytes)
/// print(header.format, header.size, header.frameCount)  // JPEG 1800 × 1200 1
/// ```
public struct ImageHeader: Hashable, Codable, Sendable {
  /// The format, detected from the first bytes.
  public var format: ImageFormat
  /// The size of one frame as displayed, with the orientation applied.
  public var size: PixelSize
  /// The orientation of the stored pixels.
  public var orientation: ImageOrientation
  /// The number of frames; 1 for a still image.
  public var frameCount: Int
  /// The duration of each frame; empty for a still image. Like browsers, durations of up to 10 ms become 100 ms.
  public var delays: [Duration]
  /// The number of times the frames are shown; `nil` means forever.
  public var loopCount: Int?
  /// Whether the image has an alpha channel.
  public var hasAlpha: Bool
  /// The color space of the file: the description of an embedded profile (ICC.1), such as `Display P3`, or `sRGB`,
  /// `grey` or `CMYK`. Decoded pixels are always sRGB, and gray pixels use the transfer curve of sRGB.
  public var colorSpace: String
  /// The bits per channel of a pixel: 8 or 16.
  public var bitDepth: Int
  /// The length of the file in bytes.
  public var byteCount: Int

  /// Creates a header from its parts, for fakes in tests.
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
  /// - Throws: `CacheError.Code.decodingFailed` if the bytes are not an image or the header is damaged,
  ///   `.imageLimitExceeded` if the image exceeds `limits`, and `.unsupported` if no engine reads the format.
  public init(of data: Data, limits: ImageLimits = .standard) throws(CacheError) {
    self = try ImageInspector.read(data, limits).header
  }

  /// Whether the image has more than one frame.
  public var isAnimated: Bool { frameCount > 1 }

  /// Returns a frame's duration like browsers: up to 10 ms is taken as unspecified.
  static func delay(_ stated: Duration) -> Duration { stated <= .milliseconds(10) ? .milliseconds(100) : stated }

  /// Returns a frame's duration for a number of seconds. Files state milliseconds or fractions, which a `Double` does not hold
  /// exactly.
  static func delay(seconds: Double) -> Duration {
    delay(seconds.isFinite ? .microseconds(Int64((min(max(seconds, 0), 1e6) * 1e6).rounded())) : .zero)
  }

  /// Returns the number of times the frames are shown, from the number that an engine found in the file. `nil` means forever.
  /// A GIF without a number is shown once, as in browsers.
  static func loopCount(stated: Int?, _ format: ImageFormat) -> Int? {
    guard let stated else { return format == .gif ? 1 : nil }
    return stated > 0 ? stated : nil
  }

  /// Returns the bits of a decoded channel, 8 or 16, for the bits of a stored one.
  static func decodedDepth(ofStored bits: Int) -> Int { bits > 8 ? 16 : 8 }
}

/// The orientation of an image's stored pixels: the eight values of EXIF's `Orientation` (CIPA DC-008 §4.6.4).
///
/// Decoded images are already upright. Their header contains the original orientation.
public enum ImageOrientation: Int, Codable, Sendable, CaseIterable {
  /// As stored.
  case up = 1
  /// Mirrored left to right.
  case upMirrored = 2
  /// Rotated by 180°.
  case down = 3
  /// Mirrored top to bottom.
  case downMirrored = 4
  /// Mirrored along the diagonal from the upper left.
  case leftMirrored = 5
  /// Rotated by 90° clockwise for display.
  case right = 6
  /// Mirrored along the diagonal from the upper right.
  case rightMirrored = 7
  /// Rotated by 90° counterclockwise for display.
  case left = 8

  /// Whether width and height are exchanged.
  public var transposes: Bool { rawValue >= 5 }

  /// Converts between the stored and the displayed size, in either direction.
  public func applied(to size: PixelSize) -> PixelSize { transposes ? size.transposed : size }
}
