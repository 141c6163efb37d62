public import Etagere

extension ImageProcessor {
  /// Returns a resize to the smallest size that covers a view, or `none` if the view has no size yet. The image keeps
  /// its aspect ratio and is not enlarged, so it suits views that fit or fill their content.
  ///
  /// - Parameters:
  ///   - width: The width of the view in points.
  ///   - height: The height of the view in points.
  ///   - scale: The number of pixels per point.
  public static func covering(width: Double, height: Double, scale: Double) -> ImageProcessor {
    let (columns, rows) = (pixels(width, scale), pixels(height, scale))
    guard columns > 0, rows > 0 else { return .none }
    return .resize(.fill(columns, rows))
  }

  /// Returns a length in pixels, rounded up, or 0 for lengths that no view on a screen has.
  private static func pixels(_ length: Double, _ scale: Double) -> Int {
    let pixels = (length * scale).rounded(.up)
    return pixels >= 1 && pixels <= 65_536 ? Int(pixels) : 0
  }
}
