/// The position of the part of an image that a crop preserves.
public struct ImageAnchor: Hashable, Sendable {
  /// The horizontal position, from 0 (left) to 1 (right).
  public let x: Double
  /// The vertical position, from 0 (top) to 1 (bottom).
  public let y: Double

  /// Creates an anchor from 0, 0 (upper left) to 1, 1 (lower right). Values outside the range are clamped, and NaN
  /// becomes the center.
  public init(x: Double, y: Double) {
    self.x = x.isNaN ? 0.5 : min(max(x, 0), 1)
    self.y = y.isNaN ? 0.5 : min(max(y, 0), 1)
  }

  /// The center.
  public static let center = ImageAnchor(x: 0.5, y: 0.5)
  /// The center of the upper edge.
  public static let top = ImageAnchor(x: 0.5, y: 0)
  /// The center of the lower edge.
  public static let bottom = ImageAnchor(x: 0.5, y: 1)
  /// The center of the left edge.
  public static let left = ImageAnchor(x: 0, y: 0.5)
  /// The center of the right edge.
  public static let right = ImageAnchor(x: 1, y: 0.5)
  /// The upper left corner.
  public static let topLeft = ImageAnchor(x: 0, y: 0)
  /// The upper right corner.
  public static let topRight = ImageAnchor(x: 1, y: 0)
  /// The lower left corner.
  public static let bottomLeft = ImageAnchor(x: 0, y: 1)
  /// The lower right corner.
  public static let bottomRight = ImageAnchor(x: 1, y: 1)
}

extension ImageAnchor: CustomStringConvertible {
  /// The text form, such as `0.5,0.0`.
  public var description: String { "\(x),\(y)" }
}
