/// A width and a height in pixels.
public struct PixelSize: Hashable, Sendable {
  /// The number of pixels from left to right.
  public var width: Int
  /// The number of pixels from top to bottom.
  public var height: Int

  /// Creates a size from its sides.
  public init(width: Int, height: Int) {
    self.width = width
    self.height = height
  }

  /// Creates a size from its sides.
  public init(_ width: Int, _ height: Int) { self.init(width: width, height: height) }

  /// Creates the size in pixels of a size in points on a screen of `scale` pixels per point, rounded up. An image of
  /// this size is never blurred by enlarging.
  public init(points width: Double, _ height: Double, scale: Double) {
    self.init(width: Self.pixels(width, scale), height: Self.pixels(height, scale))
  }

  /// The width times the height, or `Int.max` on overflow.
  public var area: Int {
    let (product, overflows) = width.multipliedReportingOverflow(by: height)
    return overflows ? .max : product
  }

  /// Whether the size contains no pixels.
  public var isEmpty: Bool { width <= 0 || height <= 0 }

  /// The size with width and height exchanged.
  public var transposed: PixelSize { PixelSize(height, width) }

  /// Less than 0.0005 pixels are a rounding error of the multiplication.
  private static func pixels(_ points: Double, _ scale: Double) -> Int {
    Int(clamping: (points * scale - 0.0005).rounded(.up))
  }
}

extension PixelSize: CustomStringConvertible {
  /// The text form: `4000 × 3000`.
  public var description: String { "\(width) × \(height)" }
}

extension Int {
  /// Converts to the nearest `Int`, and NaN to zero.
  init(clamping value: Double) {
    if value.isNaN {
      self = 0
    } else {
      self = Int(exactly: value.rounded()) ?? (value < 0 ? .min : .max)
    }
  }
}
