/// A width and a height in pixels.
public struct PixelSize: Hashable, Codable, Sendable {
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

extension PixelSize {
  /// Returns the longer side to which a codec decodes an image of this size, so that a resize to `target` enlarges neither side.
  /// The codec preserves the aspect ratio and enlarges no image. A target with this aspect ratio, rounded, is decoded directly.
  func decodedSide(for target: PixelSize) -> Int {
    guard !isEmpty else { return max(target.width, target.height, 1) }
    let factor = min(1, max(Double(target.width) / Double(width), Double(target.height) / Double(height)))
    let side = Int(clamping: (Double(max(width, height)) * factor - 0.0005).rounded(.up))
    let direct = max(target.width, target.height)
    return max(side <= direct + 1 ? min(direct, max(width, height)) : side, 1)
  }

  /// Returns the part of an image of this size that a crop to `size` at an anchor preserves. Each side is clamped to
  /// the image's.
  public func crop(to size: PixelSize, anchor: ImageAnchor = .center) -> PixelRect {
    let kept = PixelSize(min(max(size.width, 0), width), min(max(size.height, 0), height))
    return PixelRect(
      x: Int(clamping: (Double(width - kept.width) * anchor.x).rounded(.down)),
      y: Int(clamping: (Double(height - kept.height) * anchor.y).rounded(.down)), size: kept)
  }

  /// Returns the part of an image of this size with the given size, as near as possible to a center.
  ///
  /// - Parameter center: The center, in fractions of the width and height from the upper left corner.
  package func crop(to size: PixelSize, around center: (x: Double, y: Double)) -> PixelRect {
    func start(_ length: Int, _ kept: Int, _ center: Double) -> Int {
      min(max(Int(clamping: min(max(center, 0), 1) * Double(length)) - kept / 2, 0), length - kept)
    }
    let kept = crop(to: size).size
    return PixelRect(x: start(width, kept.width, center.x), y: start(height, kept.height, center.y), size: kept)
  }

  /// Returns the part of `rect` within an image of this size, which may be empty.
  public func clipping(_ rect: PixelRect) -> PixelRect {
    let left = min(max(rect.x, 0), width)
    let top = min(max(rect.y, 0), height)
    let right = min(max(rect.x.addingClamped(rect.size.width), left), width)
    let bottom = min(max(rect.y.addingClamped(rect.size.height), top), height)
    return PixelRect(x: left, y: top, size: PixelSize(right - left, bottom - top))
  }
}

extension Int {
  fileprivate func addingClamped(_ other: Int) -> Int {
    let (sum, overflows) = addingReportingOverflow(other)
    return overflows ? (other < 0 ? .min : .max) : sum
  }
}

/// A rectangle in an image, in pixels from its upper left corner.
public struct PixelRect: Hashable, Codable, Sendable {
  /// The first column.
  public var x: Int
  /// The first row.
  public var y: Int
  /// The width and height.
  public var size: PixelSize

  /// Creates a rectangle from its corner and its size.
  public init(x: Int, y: Int, size: PixelSize) {
    self.x = x
    self.y = y
    self.size = size
  }
}

extension PixelRect: CustomStringConvertible {
  /// The text form: `400 × 300 at 10, 20`.
  public var description: String { "\(size) at \(x), \(y)" }
}
