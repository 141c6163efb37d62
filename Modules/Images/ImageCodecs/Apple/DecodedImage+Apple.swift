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
  /// Creates an image from a UIKit image, upright and in sRGB. It has no alpha if the `cgImage` of the UIKit image has none.
  /// Returns `nil` if there is not enough memory, or if the UIKit image is empty.
  public init?(_ image: UIImage) {
    // The tint of a symbol appears only when it is drawn.
    if image.imageOrientation == .up, !image.isSymbolImage, let stored = image.cgImage {
      self.init(stored, scale: Double(image.scale))
      return
    }
    // Drawn, because the pixels may be rotated, or not exist yet.
    let format = UIGraphicsImageRendererFormat()
    format.scale = image.scale
    format.opaque = image.cgImage.map { !$0.hasAlpha } ?? false
    format.preferredRange = .standard
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
