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
  public var size: PixelSize { surface.content.size }
  /// The number of pixels per point.
  public internal(set) var scale: Double
  /// Whether every pixel is opaque, so that nothing behind the image must be drawn.
  public var isOpaque: Bool { surface.content.isOpaque }
  /// The number of bytes from one row to the next.
  public var bytesPerRow: Int { surface.content.rows.size.width * 4 }
  private let surface: DisplaySurface
  /// Whether the image is shown as a template, in the tint color of its view. Only the alpha of its pixels counts then.
  ///
  /// ```swift
  /// let icon = ResourceTransform.displayImage(scale: 2).map("template") { $0.asTemplate() }
  /// ```
  public private(set) var isTemplate = false
  /// Whether the file was truncated or damaged, and a part of the image is missing.
  package private(set) var isPartial = false
  /// The frames of an animated image, or `nil` for a still image.
  private let animation: DecodedImage?

  /// Converts a decoded image, or its first frame, in one pass over the pixels.
  ///
  /// - Throws: `CacheError.Code.imageLimitExceeded` if there is not enough memory for the pixels.
  public init(_ image: DecodedImage) throws(CacheError) {
    try self.init(image.buffer, scale: image.scale, animation: image.frameCount > 1 ? image : nil)
    isPartial = image.isPartial
  }

  private init(_ pixels: PixelBuffer, scale: Double, animation: DecodedImage? = nil) throws(CacheError) {
    guard let rows = ScreenRows(size: pixels.size, isOpaque: !pixels.channels.hasAlpha, fill: pixels.fillDisplayRows) else {
      throw CacheError(.imageLimitExceeded, reason: "not enough memory for an image of \(pixels.size) pixels")
    }
    self.init(rows, scale: scale, animation: animation)
  }

  /// Creates an image over rows, without a copy.
  init(_ rows: ScreenRows, scale: Double, animation: DecodedImage? = nil) {
    surface = DisplaySurface(rows)
    self.scale = scale
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
  public var cost: Int { surface.content.rows.byteCount + (animation?.cost ?? 0) }

  /// Returns the image as a template: see ``isTemplate``.
  public func asTemplate() -> DisplayImage {
    var image = self
    image.isTemplate = true
    return image
  }

  /// Calls `body` with the bytes of all rows, each ``bytesPerRow`` long.
  public func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
    try surface.content.rows.withUnsafeBytes(body)
  }

  /// Decodes one frame of an animated image, off the caller's actor.
  ///
  /// - Throws: The errors of `DecodedImage.pixels(ofFrame:)`.
  @concurrent public func frame(_ index: Int) async throws(CacheError) -> DisplayImage {
    guard let animation else {
      guard index == 0 else { throw CacheError(.misuse, reason: "a still image has no frame \(index)") }
      return self
    }
    let frame = try DisplayImage(try animation.pixels(ofFrame: index), scale: scale)
    return isTemplate ? frame.asTemplate() : frame
  }

  /// Returns the pixels with straight alpha, rounded to the nearest. Their conversion gives the same display image again.
  ///
  /// - Throws: `CacheError.Code.imageLimitExceeded` if there is not enough memory for the pixels.
  package func straightPixels() throws(CacheError) -> PixelBuffer {
    let channels: PixelBuffer.Channels = isOpaque ? .rgb : .rgba
    let (step, rowLength) = (channels.rawValue, bytesPerRow)
    let pixels = PixelBuffer(size: size, channels: channels) { target in
      withUnsafeBytes { source in
        for row in 0..<size.height {
          var (from, to) = (row * rowLength, row * size.width * step)
          for _ in 0..<size.width {
            let alpha = isOpaque ? 255 : UInt32(source[from + 3])
            for channel in 0..<3 { target[to + channel] = PixelBuffer.straight(source[from + 2 - channel], alpha) }
            if !isOpaque { target[to + 3] = UInt8(alpha) }
            from += 4
            to += step
          }
        }
      }
    }
    guard let pixels else {
      throw CacheError(.imageLimitExceeded, reason: "not enough memory for an image of \(size) pixels")
    }
    return pixels
  }

  /// The object that holds the pixels, which copies share.
  package var storage: any AnyObject & Sendable { surface }

  /// Whether two images look the same, because they share their pixels.
  package func isSame(as other: DisplayImage?) -> Bool { surface === other?.surface && isTemplate == other?.isTemplate }

  #if canImport(CoreGraphics)
  /// The Core Graphics image over the same pixels, created once. `nil` if the system cannot create one.
  public var cgImage: CGImage? { surface.cgImage }
  #endif
}

/// The pixels of a display image and, on Apple platforms, the system's image over them.
// Proof of `@unchecked Sendable`: all properties are constants. A CGImage does not change, and its functions may be called from
// any thread.
final class DisplaySurface: @unchecked Sendable {
  let content: ScreenRows

  init(_ content: ScreenRows) {
    self.content = content
    #if canImport(CoreGraphics)
    cgImage = content.rows.makeDisplayImage(width: content.size.width, isOpaque: content.isOpaque)
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

  /// Returns a color divided by alpha, rounded to the nearest.
  fileprivate static func straight(_ color: UInt8, _ alpha: UInt32) -> UInt8 {
    alpha == 255 || alpha == 0 ? color : UInt8(min(255, (UInt32(color) * 255 + alpha / 2) / alpha))
  }
}

#if canImport(CoreGraphics)
extension PixelBuffer {
  /// Returns a Core Graphics image over rows of premultiplied BGRA, without a copy. The image keeps the pixels alive.
  func makeDisplayImage(width: Int, isOpaque: Bool) -> CGImage? {
    guard let space = CGColorSpace(name: CGColorSpace.sRGB) else { return nil }
    let holder = Unmanaged.passRetained(PixelHolder(self))
    let provider = withUnsafeBytes { bytes -> CGDataProvider? in
      guard let start = bytes.baseAddress else { return nil }
      return CGDataProvider(dataInfo: holder.toOpaque(), data: start, size: bytes.count) { holder, _, _ in
        if let holder { Unmanaged<PixelHolder>.fromOpaque(holder).release() }
      }
    }
    guard let provider else {
      holder.release()
      return nil
    }
    let alpha: CGImageAlphaInfo = isOpaque ? .noneSkipFirst : .premultipliedFirst
    return CGImage(
      width: width, height: size.height, bitsPerComponent: 8, bitsPerPixel: 32, bytesPerRow: size.width * 4, space: space,
      bitmapInfo: CGBitmapInfo(rawValue: alpha.rawValue | CGBitmapInfo.byteOrder32Little.rawValue), provider: provider,
      decode: nil, shouldInterpolate: true, intent: .defaultIntent)
  }
}

/// An object that keeps the memory of pixels alive while Core Graphics reads it.
private final class PixelHolder: Sendable {
  let pixels: PixelBuffer

  init(_ pixels: PixelBuffer) { self.pixels = pixels }
}
#endif
