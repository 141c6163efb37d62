#if canImport(CoreGraphics)
public import CoreGraphics

extension DecodedImage {
  /// A picture of an image of Core Graphics. Nil where there is no room for its pixels.
  public init?(_ image: CGImage, scale: Double = 1) {
    guard let pixels = PixelBuffer(image) else { return nil }
    self.init(pixels, scale: scale)
  }

  /// The picture, or its first frame, for Core Graphics. Nil where the system makes none.
  public var cgImage: CGImage? { buffer.makeCGImage() }
}
#endif

#if canImport(UIKit)
public import UIKit

extension DecodedImage {
  #if !os(watchOS)
  /// A picture of an image of UIKit's. Nil for one that has no `cgImage`.
  public init?(_ image: UIImage) {
    // Drawn, since an image of UIKit's may be stored turned.
    let format = UIGraphicsImageRendererFormat()
    format.scale = image.scale
    let upright = UIGraphicsImageRenderer(size: image.size, format: format).image { _ in image.draw(at: .zero) }
    guard let drawn = upright.cgImage else { return nil }
    self.init(drawn, scale: Double(image.scale))
  }
  #endif

  /// The picture, or its first frame, for UIKit, in points by ``scale``. Nil where the system makes none.
  public var uiImage: UIImage? { cgImage.map { UIImage(cgImage: $0, scale: CGFloat(scale), orientation: .up) } }
}
#endif

#if canImport(AppKit) && !targetEnvironment(macCatalyst)
public import AppKit

extension DecodedImage {
  /// A picture of an image of AppKit's. Nil for one that has no `CGImage`.
  public init?(_ image: NSImage) {
    guard let drawn = image.cgImage(forProposedRect: nil, context: nil, hints: nil) else { return nil }
    self.init(drawn, scale: image.size.width > 0 ? Double(drawn.width) / Double(image.size.width) : 1)
  }

  /// The picture, or its first frame, for AppKit, in points by ``scale``. Nil where the system makes none.
  public var nsImage: NSImage? { cgImage.map { NSImage(cgImage: $0, size: CGSize(width: pointWidth, height: pointHeight)) } }
}
#endif

#if canImport(SwiftUI)
public import SwiftUI

extension Image {
  /// A picture, or its first frame, for SwiftUI, in points by its scale. Nil where the system makes none.
  public init?(_ image: DecodedImage, label: Text) {
    guard let drawn = image.cgImage else { return nil }
    self.init(drawn, scale: CGFloat(image.scale), label: label)
  }
}
#endif
