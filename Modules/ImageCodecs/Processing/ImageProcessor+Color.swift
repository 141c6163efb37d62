internal import CacheCore

extension ImageProcessor {
  /// Converts to shades of gray by the luma of Rec. 709.
  public static let gray = ImageProcessor([ImageStep(name: "gray") { pixels, _ throws(CacheError) in try pixels.gray() }])

  /// Blends a color over the image and preserves its alpha. `amount` is between 0 (the unchanged image) and 1 (only the
  /// color).
  public static func tint(_ color: RGBA, amount: Double = 0.5) -> Self {
    let weight = Int(clamping: (amount.isNaN ? 0 : min(max(amount, 0), 1)) * Double(color.alpha))
    let step = ImageStep(name: "tint(\(color.red),\(color.green),\(color.blue),\(weight))") { pixels, _ throws(CacheError) in
      try pixels.mixed(with: color) { _, _ in weight }
    }
    return ImageProcessor([step])
  }

  /// Makes the corners transparent outside a radius in pixels, with soft edges. The radius is at most half of the
  /// shorter side.
  public static func roundCorners(radius: Double) -> Self {
    ImageProcessor([ImageStep(name: "round(\(radius))") { pixels, _ throws(CacheError) in try pixels.cut(to: radius) }])
  }

  /// Crops the center of the image to a circle.
  public static let circle = ImageProcessor([
    ImageStep(name: "circle") { pixels, _ throws(CacheError) in
      let side = min(pixels.size.width, pixels.size.height)
      return try pixels.part(pixels.size.crop(to: PixelSize(side, side))).cut(to: Double(side) / 2)
    }
  ])

  /// Draws a border of `width` pixels inside the edges, with rounded corners. The size of the image does not change.
  public static func border(width: Double, color: RGBA, radius: Double = 0) -> Self {
    let name = "border(\(width),\(color.red),\(color.green),\(color.blue),\(color.alpha),\(radius))"
    let step = ImageStep(name: name) { pixels, _ throws(CacheError) in
      let shape = RoundedShape(size: pixels.size, radius: radius)
      return try pixels.mixed(with: color) { x, y in
        (shape.coverage(x, y) - shape.coverage(x, y, inset: width)) * Int(color.alpha) / 255
      }
    }
    return ImageProcessor([step])
  }

  /// Blurs with an approximated Gaussian (three box means) of a standard deviation of `sigma` pixels, at most 1,000.
  public static func blur(sigma: Double) -> Self {
    ImageProcessor([ImageStep(name: "blur(\(sigma))") { pixels, watch throws(CacheError) in try pixels.blurred(sigma, watch) }])
  }
}
