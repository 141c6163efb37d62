/// Width and height in pixels.
public struct PixelSize: Hashable, Sendable {
  /// Pixels from left to right.
  public var width: Int
  /// Pixels from top to bottom.
  public var height: Int

  /// A size of its sides.
  public init(width: Int, height: Int) {
    self.width = width
    self.height = height
  }

  /// A size of its sides.
  public init(_ width: Int, _ height: Int) { self.init(width: width, height: height) }

  /// The pixels that a size in points has on a screen of `scale` pixels a point, rounded up: a picture is never softer than its
  /// place.
  public init(points width: Double, _ height: Double, scale: Double) {
    self.init(width: Self.pixels(width, scale), height: Self.pixels(height, scale))
  }

  /// Width times height; `Int.max` where that has no room in an `Int`.
  public var area: Int {
    let (product, overflows) = width.multipliedReportingOverflow(by: height)
    return overflows ? .max : product
  }

  /// Whether there is no pixel in it.
  public var isEmpty: Bool { width <= 0 || height <= 0 }

  /// Width and height exchanged.
  public var transposed: PixelSize { PixelSize(height, width) }

  /// Half a thousandth of a pixel is a rounding error of the multiplication, not a pixel.
  private static func pixels(_ points: Double, _ scale: Double) -> Int {
    Int(clamping: (points * scale - 0.0005).rounded(.up))
  }
}

extension PixelSize: CustomStringConvertible {
  /// `4000 × 3000`.
  public var description: String { "\(width) × \(height)" }
}

extension Int {
  /// The nearest `Int`; zero for what is not a number.
  init(clamping value: Double) {
    if value.isNaN {
      self = 0
    } else {
      self = Int(exactly: value.rounded()) ?? (value < 0 ? .min : .max)
    }
  }
}
