/// How a picture's stored rows and columns lie on the screen: the eight values of EXIF's `Orientation` (CIPA DC-008 §4.6.4).
///
/// A decoded picture is upright already: this is what was done to it.
public enum ImageOrientation: Int, Sendable, CaseIterable {
  /// As stored.
  case up = 1
  /// Mirrored left to right.
  case upMirrored = 2
  /// Turned by 180°.
  case down = 3
  /// Mirrored top to bottom.
  case downMirrored = 4
  /// Mirrored along the diagonal from the upper left.
  case leftMirrored = 5
  /// To be turned by 90° clockwise.
  case right = 6
  /// Mirrored along the diagonal from the upper right.
  case rightMirrored = 7
  /// To be turned by 90° anticlockwise.
  case left = 8

  /// Whether width and height change places.
  public var transposes: Bool { rawValue >= 5 }

  /// The size as it is shown of a size as it is stored, and the other way round.
  public func applied(to size: PixelSize) -> PixelSize { transposes ? size.transposed : size }
}
