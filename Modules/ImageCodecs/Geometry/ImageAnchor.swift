/// Which part of a picture stays when the rest is cut off.
public struct ImageAnchor: Hashable, Sendable {
  /// From 0 (left) to 1 (right).
  public let x: Double
  /// From 0 (top) to 1 (bottom).
  public let y: Double

  /// A place in the picture, from 0, 0 (upper left) to 1, 1 (lower right). What lies outside, or is not a number, is taken to the
  /// edge, or to the middle.
  public init(x: Double, y: Double) {
    self.x = x.isNaN ? 0.5 : min(max(x, 0), 1)
    self.y = y.isNaN ? 0.5 : min(max(y, 0), 1)
  }

  /// The middle.
  public static let center = ImageAnchor(x: 0.5, y: 0.5)
  /// The middle of the upper edge.
  public static let top = ImageAnchor(x: 0.5, y: 0)
  /// The middle of the lower edge.
  public static let bottom = ImageAnchor(x: 0.5, y: 1)
  /// The middle of the left edge.
  public static let left = ImageAnchor(x: 0, y: 0.5)
  /// The middle of the right edge.
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
  /// `0.5,0`.
  public var description: String { "\(x),\(y)" }
}
