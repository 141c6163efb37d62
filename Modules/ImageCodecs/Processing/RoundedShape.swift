/// A rectangle with round corners, and how much of each pixel lies within.
struct RoundedShape {
  private let (width, height, radius): (Double, Double, Double)

  init(size: PixelSize, radius: Double) {
    (width, height) = (Double(size.width), Double(size.height))
    self.radius = radius.isNaN ? 0 : min(max(radius, 0), min(width, height) / 2)
  }

  /// From 0, outside, to 255, inside: by the distance of the pixel's middle from the edge.
  func coverage(_ x: Int, _ y: Int, inset: Double = 0) -> Int {
    // From the middle of the shape, in the quarter where both are positive.
    let u = abs(Double(x) + 0.5 - width / 2) - width / 2 + radius
    let v = abs(Double(y) + 0.5 - height / 2) - height / 2 + radius
    let outside = (max(u, 0) * max(u, 0) + max(v, 0) * max(v, 0)).squareRoot() + min(max(u, v), 0) - radius
    return Int(clamping: (min(max(0.5 - outside - max(inset, 0), 0), 1)) * 255)
  }
}
