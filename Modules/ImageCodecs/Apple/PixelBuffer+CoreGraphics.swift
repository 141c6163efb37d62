#if canImport(CoreGraphics)
public import CoreGraphics
internal import Foundation

extension PixelBuffer {
  /// Creates the pixels of a Core Graphics image, in sRGB. Returns `nil` if there is not enough memory.
  public init?(_ image: CGImage) { self.init(drawing: image, size: PixelSize(image.width, image.height)) }

  /// Draws a Core Graphics image in exactly the given size, in sRGB.
  init?(drawing image: CGImage, size: PixelSize) {
    guard let space = CGColorSpace(name: CGColorSpace.sRGB) else { return nil }
    var isDrawn = false
    self.init(size: size, channels: .rgba) { bytes in
      // A context supports only premultiplied alpha.
      guard
        let context = CGContext(
          data: bytes.baseAddress, width: size.width, height: size.height, bitsPerComponent: 8, bytesPerRow: size.width * 4,
          space: space, bitmapInfo: CGImageAlphaInfo.premultipliedLast.rawValue)
      else { return }
      context.interpolationQuality = .high
      context.draw(image, in: CGRect(x: 0, y: 0, width: size.width, height: size.height))
      Self.undoPremultiplication(bytes)
      isDrawn = true
    }
    guard isDrawn else { return nil }
  }

  /// Returns a Core Graphics image that shares the memory of these pixels, or `nil` if the system cannot create one.
  public func makeCGImage() -> CGImage? {
    guard let pixels = try? widened(), let space = CGColorSpace(name: CGColorSpace.sRGB) else { return nil }
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
    let alpha: CGImageAlphaInfo = channels.hasAlpha ? .last : .noneSkipLast
    return CGImage(
      width: size.width, height: size.height, bitsPerComponent: 8, bitsPerPixel: 32, bytesPerRow: size.width * 4, space: space,
      bitmapInfo: CGBitmapInfo(rawValue: alpha.rawValue), provider: provider, decode: nil, shouldInterpolate: true,
      intent: .defaultIntent)
  }
}
#endif
