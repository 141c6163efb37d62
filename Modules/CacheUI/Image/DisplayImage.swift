public import Etagere

#if canImport(CoreGraphics)
public import CoreGraphics
#endif

/// An image in the pixel format of the screen, which can be shown without a conversion.
///
/// Each pixel has four bytes in sRGB: blue, green, red and alpha. The colors are premultiplied by alpha. Each row starts at a
/// multiple of 64 bytes. Core Animation copies images of any other format on the main thread.
///
/// ```swift
/// let resource = try await manager.load(url, as: .displayImage(.resize(.fit(400, 400)), scale: 2))
/// show(resource.value)  // its cgImage can be the contents of a layer
/// ```
///
/// Copies share their pixels.
public struct DisplayImage: Sendable {
  /// The width and the height in pixels.
  public let size: PixelSize
  /// The number of pixels per point.
  public let scale: Double
  /// Whether every pixel is opaque, so that nothing behind the image must be drawn.
  public let isOpaque: Bool
  /// The number of bytes from one row to the next.
  public var bytesPerRow: Int { surface.pixels.size.width * 4 }
  private let surface: DisplaySurface
  /// The frames of an animated image, or `nil` for a still image.
  private let animation: DecodedImage?

  /// Converts a decoded image, or its first frame, in one pass over the pixels.
  ///
  /// - Throws: `CacheError.Code.imageLimitExceeded` if there is not enough memory for the pixels.
  public init(_ image: DecodedImage) throws(CacheError) {
    try self.init(image.buffer, scale: image.scale, animation: image.frameCount > 1 ? image : nil)
  }

  private init(_ pixels: PixelBuffer, scale: Double, animation: DecodedImage? = nil) throws(CacheError) {
    size = pixels.size
    self.scale = scale
    isOpaque = !pixels.channels.hasAlpha
    surface = try DisplaySurface(pixels)
    self.animation = animation
  }

  /// The width in points.
  public var pointWidth: Double { Double(size.width) / scale }
  /// The height in points.
  public var pointHeight: Double { Double(size.height) / scale }
  /// The number of frames, which is 1 for a still image.
  public var frameCount: Int { animation?.frameCount ?? 1 }
  /// The duration of each frame. Empty for a still image.
  public var delays: [Duration] { animation?.delays ?? [] }
  /// The number of times the frames are shown; `nil` means forever.
  public var loopCount: Int? { animation?.loopCount }
  /// The memory of the image in bytes: its pixels, and the data from which further frames are decoded.
  public var cost: Int { surface.pixels.byteCount + (animation?.cost ?? 0) }

  /// Calls `body` with the bytes of all rows, each ``bytesPerRow`` long.
  public func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
    try surface.pixels.withUnsafeBytes(body)
  }

  /// Decodes one frame of an animated image, off the caller's actor.
  ///
  /// - Throws: The errors of `DecodedImage.pixels(ofFrame:)`.
  @concurrent public func frame(_ index: Int) async throws(CacheError) -> DisplayImage {
    guard let animation else {
      guard index == 0 else { throw CacheError(.misuse, reason: "a still image has no frame \(index)") }
      return self
    }
    return try DisplayImage(try animation.pixels(ofFrame: index), scale: scale)
  }

  /// Whether two images share their pixels.
  package func isSame(as other: DisplayImage?) -> Bool { surface === other?.surface }

  #if canImport(CoreGraphics)
  /// The Core Graphics image over the same pixels, created once. `nil` if the system cannot create one.
  public var cgImage: CGImage? { surface.cgImage }
  #endif
}

/// The pixels of a display image and, on Apple platforms, the system's image over them.
// Proof of `@unchecked Sendable`: all properties are constants. A CGImage does not change, and its functions may be called from
// any thread.
final class DisplaySurface: @unchecked Sendable {
  /// Four bytes per pixel. The width is a multiple of 16 pixels.
  let pixels: PixelBuffer

  init(_ source: PixelBuffer) throws(CacheError) {
    let width = (source.size.width + 15) & ~15
    guard let pixels = PixelBuffer(size: PixelSize(width, source.size.height), channels: .rgba, fill: source.fillDisplayRows)
    else { throw CacheError(.imageLimitExceeded, reason: "not enough memory for an image of \(source.size) pixels") }
    self.pixels = pixels
    #if canImport(CoreGraphics)
    cgImage = pixels.makeDisplayImage(width: source.size.width, isOpaque: !source.channels.hasAlpha)
    #endif
  }

  #if canImport(CoreGraphics)
  let cgImage: CGImage?
  #endif
}

extension PixelBuffer {
  /// Writes the pixels as premultiplied BGRA into rows whose length is a multiple of 64 bytes.
  fileprivate func fillDisplayRows(_ target: UnsafeMutableRawBufferPointer) {
    let (step, width) = (channels.rawValue, size.width)
    let rowLength = target.count / size.height
    // A gray pixel has one byte for all colors.
    let (green, blue) = step < 3 ? (0, 0) : (1, 2)
    withUnsafeBytes { source in
      for row in 0..<size.height {
        var (from, to) = (row * width * step, row * rowLength)
        let end = from + width * step
        while from < end {
          let alpha = channels.hasAlpha ? UInt32(source[from + step - 1]) : 255
          target[to] = Self.premultiplied(source[from + blue], alpha)
          target[to + 1] = Self.premultiplied(source[from + green], alpha)
          target[to + 2] = Self.premultiplied(source[from], alpha)
          target[to + 3] = UInt8(alpha)
          from += step
          to += 4
        }
      }
    }
  }

  /// Returns a color times alpha, rounded to the nearest.
  private static func premultiplied(_ color: UInt8, _ alpha: UInt32) -> UInt8 {
    alpha == 255 ? color : UInt8((UInt32(color) * alpha + 127) / 255)
  }
}
