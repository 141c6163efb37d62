/// A rectangle with rounded corners, and its coverage of each pixel.
struct RoundedShape {
  private let (width, height, radius): (Double, Double, Double)

  init(size: PixelSize, radius: Double) {
    (width, height) = (Double(size.width), Double(size.height))
    self.radius = radius.isNaN ? 0 : min(max(radius, 0), min(width, height) / 2)
  }

  /// Returns the coverage from 0 (outside) to 255 (inside), by the distance of the pixel's center from the edge.
  func coverage(_ x: Int, _ y: Int, inset: Double = 0) -> Int {
    // Relative to the center of the shape, mirrored into the quadrant in which both are positive.
    let u = abs(Double(x) + 0.5 - width / 2) - width / 2 + radius
    let v = abs(Double(y) + 0.5 - height / 2) - height / 2 + radius
    let outside = (max(u, 0) * max(u, 0) + max(v, 0) * max(v, 0)).squareRoot() + min(max(u, v), 0) - radius
    return Int(clamping: (min(max(0.5 - outside - max(inset, 0), 0), 1)) * 255)
  }
}
