#if canImport(CoreGraphics)
internal import CoreGraphics
internal import Etagere

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
