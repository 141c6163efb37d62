#if canImport(CoreGraphics)
public import CoreGraphics
internal import Foundation

extension PixelBuffer {
  /// Creates the pixels of a Core Graphics image, in sRGB. They have alpha, and colors, only if the image has. Returns `nil` if
  /// there is not enough memory.
  public init?(_ image: CGImage) {
    let channels = Channels(isGray: image.isGray, decodedAlpha: image.hasAlpha)
    self.init(drawing: image, size: PixelSize(image.width, image.height), channels: channels)
  }

  /// Draws a Core Graphics image in exactly the given size, in sRGB.
  init?(drawing image: CGImage, size: PixelSize, channels: Channels) {
    var isDrawn = false
    let drawn = PixelBuffer(size: size, channels: .rgba) { bytes in
      // A context has four bytes per color pixel, and supports only premultiplied alpha. A gray context has no sRGB curve.
      let alpha: CGImageAlphaInfo = channels.hasAlpha ? .premultipliedLast : .noneSkipLast
      isDrawn = image.draw(into: bytes, size, bytesPerRow: size.width * 4, bitmapInfo: alpha.rawValue)
      if channels.hasAlpha { Self.unpremultiply(bytes, .rgba) }
    }
    guard isDrawn, let narrowed = try? drawn?.narrowed(to: channels) else { return nil }
    self = narrowed
  }

  /// Returns a Core Graphics image that shares the memory of these pixels, or `nil` if the system cannot create one.
  public func makeCGImage() -> CGImage? { makeCGImage(BitmapLayout(channels, keepsGray: false)) }

  /// Returns a Core Graphics image with the layout in which ImageIO encodes it, or `nil` if the system cannot create one.
  func makeCGImage(encodedAs format: ImageFormat) -> CGImage? {
    // If the system refuses gray pixels, four channels hold the same image in more bytes.
    makeCGImage(BitmapLayout(channels, encodedAs: format)) ?? makeCGImage()
  }

  private func makeCGImage(_ layout: BitmapLayout) -> CGImage? {
    let space = layout.isGray ? CGColorSpace(iccData: Data(ICCProfile.gray) as CFData) : CGColorSpace(name: CGColorSpace.sRGB)
    guard let pixels = layout.isGray ? self : try? widened(), let space else { return nil }
    let holder = Unmanaged.passRetained(pixels.memory)
    let provider = pixels.memory.withBytes { bytes -> CGDataProvider? in
      guard let start = bytes.baseAddress else { return nil }
      return CGDataProvider(dataInfo: holder.toOpaque(), data: start, size: bytes.count) { holder, _, _ in
        if let holder { Unmanaged<PixelMemory>.fromOpaque(holder).release() }
      }
    }
    guard let provider else {
      holder.release()
      return nil
    }
    let alpha: CGImageAlphaInfo =
      switch layout.alpha {
      case .absent: .none
      case .last: .last
      case .skipped: .noneSkipLast
      }
    return CGImage(
      width: size.width, height: size.height, bitsPerComponent: 8, bitsPerPixel: layout.bytesPerPixel * 8,
      bytesPerRow: size.width * layout.bytesPerPixel, space: space, bitmapInfo: CGBitmapInfo(rawValue: alpha.rawValue),
      provider: provider, decode: nil, shouldInterpolate: true, intent: .defaultIntent)
  }
}

extension ScreenRows {
  /// Draws a Core Graphics image in exactly the given size. Returns `nil` if there is not enough memory.
  init?(drawing image: CGImage, size: PixelSize, isOpaque: Bool) {
    var isDrawn = false
    // Also an opaque image is drawn with alpha, which sets the fourth byte of each pixel.
    let layout = CGImageAlphaInfo.premultipliedFirst.rawValue | CGBitmapInfo.byteOrder32Little.rawValue
    self.init(size: size, isOpaque: isOpaque) { bytes in
      isDrawn = image.draw(into: bytes, size, bytesPerRow: bytes.count / size.height, bitmapInfo: layout)
    }
    guard isDrawn else { return nil }
  }
}

extension CGImage {
  /// Whether the image has only shades of gray.
  var isGray: Bool { colorSpace?.model == .monochrome }

  /// Draws the image in exactly the given size, in sRGB. Returns `false` if the system cannot do it.
  func draw(into bytes: UnsafeMutableRawBufferPointer, _ size: PixelSize, bytesPerRow: Int, bitmapInfo: UInt32) -> Bool {
    guard let space = CGColorSpace(name: CGColorSpace.sRGB),
      let context = CGContext(
        data: bytes.baseAddress, width: size.width, height: size.height, bitsPerComponent: 8, bytesPerRow: bytesPerRow,
        space: space, bitmapInfo: bitmapInfo)
    else { return false }
    context.interpolationQuality = size == PixelSize(width, height) ? .none : .high
    context.draw(self, in: CGRect(x: 0, y: 0, width: size.width, height: size.height))
    return true
  }

  /// Whether the image has an alpha channel.
  var hasAlpha: Bool {
    switch alphaInfo {
    case .none, .noneSkipLast, .noneSkipFirst: false
    default: true
    }
  }
}
#endif
