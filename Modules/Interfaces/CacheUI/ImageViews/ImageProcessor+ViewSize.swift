public import Etagere

extension ImageProcessor {
  /// Returns a resize to the smallest size that covers a view, or `none` if the view has no size yet. The image keeps
  /// its aspect ratio and is not enlarged, so it suits views that fit or fill their content.
  ///
  /// - Parameters:
  ///   - width: The width of the view in points.
  ///   - height: The height of the view in points.
  ///   - scale: The number of pixels per point.
  public static func covering(width: Double, height: Double, scale: Double) -> ImageProcessor {
    covering(PixelSize(viewWidth: width, height: height, scale: scale))
  }

  /// Returns a resize to the smallest size that covers a view of a size in pixels, or `none` without a size: see
  /// ``covering(width:height:scale:)``.
  public static func covering(_ size: PixelSize?) -> ImageProcessor { size.map { .resize(.fill($0.width, $0.height)) } ?? .none }
}

extension PixelSize {
  /// Creates the size of a view in pixels, rounded up, or `nil` for lengths that no view on a screen has.
  package init?(viewWidth width: Double, height: Double, scale: Double) {
    guard let width = Self.side(width, scale), let height = Self.side(height, scale) else { return nil }
    self.init(width, height)
  }

  private static func side(_ length: Double, _ scale: Double) -> Int? {
    let pixels = (length * scale).rounded(.up)
    return pixels >= 1 && pixels <= 65_536 ? Int(pixels) : nil
  }

  /// Returns the size in which a view that now has this size loads its image again, after a load in `former`.
  ///
  /// The image of a view that has shrunk to not less than half of a side stays. Other sizes are rounded up to quarters of a power
  /// of two, so that a window that is being resized starts a few loads and not one for each frame.
  package func resized(from former: PixelSize) -> PixelSize {
    let isCovered = width <= former.width && height <= former.height
    if isCovered, former.width <= 2 * width, former.height <= 2 * height { return former }
    return PixelSize(Self.roundedUp(width), Self.roundedUp(height))
  }

  private static func roundedUp(_ side: Int) -> Int {
    guard side > 4 else { return side }
    let step = (1 << (Int.bitWidth - 1 - side.leadingZeroBitCount)) / 4
    return (side + step - 1) / step * step
  }
}

/// Returns the first scale that a display can have. UIKit reports 0 for a view that has never been in a window.
package func firstDisplayScale(of scales: Double...) -> Double { scales.first { $0 >= 1 && $0 <= 16 } ?? 2 }
