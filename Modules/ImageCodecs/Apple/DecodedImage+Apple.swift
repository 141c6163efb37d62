#if canImport(CoreGraphics)
public import CoreGraphics

extension DecodedImage {
  /// Creates an image from a Core Graphics image. Returns `nil` if there is not enough memory for its pixels.
  public init?(_ image: CGImage, scale: Double = 1) {
    guard let pixels = PixelBuffer(image) else { return nil }
    self.init(pixels, scale: scale)
  }

  /// The image, or its first frame, as a Core Graphics image. `nil` if the system cannot create one.
  public var cgImage: CGImage? { buffer.makeCGImage() }
}
#endif

#if canImport(UIKit)
public import UIKit

extension DecodedImage {
  #if !os(watchOS)
  /// Creates an image from a UIKit image. Returns `nil` if the UIKit image has no `cgImage`.
  public init?(_ image: UIImage) {
    // Redrawn, because a `UIImage` may be stored rotated.
    let format = UIGraphicsImageRendererFormat()
    format.scale = image.scale
    let upright = UIGraphicsImageRenderer(size: image.size, format: format).image { _ in image.draw(at: .zero) }
    guard let drawn = upright.cgImage else { return nil }
    self.init(drawn, scale: Double(image.scale))
  }
  #endif

  /// The image, or its first frame, as a UIKit image, with a size in points according to ``scale``. `nil` if the system
  /// cannot create one.
  public var uiImage: UIImage? { cgImage.map { UIImage(cgImage: $0, scale: CGFloat(scale), orientation: .up) } }
}
#endif

#if canImport(AppKit) && !targetEnvironment(macCatalyst)
public import AppKit

extension DecodedImage {
  /// Creates an image from an AppKit image. Returns `nil` if the AppKit image has no `CGImage`.
  public init?(_ image: NSImage) {
    guard let drawn = image.cgImage(forProposedRect: nil, context: nil, hints: nil) else { return nil }
    self.init(drawn, scale: image.size.width > 0 ? Double(drawn.width) / Double(image.size.width) : 1)
  }

  /// The image, or its first frame, as an AppKit image, with a size in points according to ``scale``. `nil` if the
  /// system cannot create one.
  public var nsImage: NSImage? { cgImage.map { NSImage(cgImage: $0, size: CGSize(width: pointWidth, height: pointHeight)) } }
}
#endif

#if canImport(SwiftUI)
public import SwiftUI

extension Image {
  /// Creates a SwiftUI image from an image or its first frame, with a size in points according to its scale. Returns
  /// `nil` if the system cannot create one.
  public init?(_ image: DecodedImage, label: Text) {
    guard let drawn = image.cgImage else { return nil }
    self.init(drawn, scale: CGFloat(image.scale), label: label)
  }
}
#endif
