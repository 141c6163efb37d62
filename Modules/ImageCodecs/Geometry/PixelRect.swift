/// A rectangle in an image, in pixels from its upper left corner.
public struct PixelRect: Hashable, Sendable {
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
