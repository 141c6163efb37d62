/// The orientation of an image's stored pixels: the eight values of EXIF's `Orientation` (CIPA DC-008 §4.6.4).
///
/// Decoded images are already upright. Their header contains the original orientation.
public enum ImageOrientation: Int, Sendable, CaseIterable {
  /// As stored.
  case up = 1
  /// Mirrored left to right.
  case upMirrored = 2
  /// Rotated by 180°.
  case down = 3
  /// Mirrored top to bottom.
  case downMirrored = 4
  /// Mirrored along the diagonal from the upper left.
  case leftMirrored = 5
  /// Rotated by 90° clockwise for display.
  case right = 6
  /// Mirrored along the diagonal from the upper right.
  case rightMirrored = 7
  /// Rotated by 90° counterclockwise for display.
  case left = 8

  /// Whether width and height are exchanged.
  public var transposes: Bool { rawValue >= 5 }

  /// Converts between the stored and the displayed size, in either direction.
  public func applied(to size: PixelSize) -> PixelSize { transposes ? size.transposed : size }
}
