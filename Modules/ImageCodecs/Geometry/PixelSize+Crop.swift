extension PixelSize {
  /// Returns the part of an image of this size that a crop to `size` at an anchor preserves. Each side is clamped to
  /// the image's.
  public func crop(to size: PixelSize, anchor: ImageAnchor = .center) -> PixelRect {
    let kept = PixelSize(min(max(size.width, 0), width), min(max(size.height, 0), height))
    return PixelRect(
      x: Int(clamping: (Double(width - kept.width) * anchor.x).rounded(.down)),
      y: Int(clamping: (Double(height - kept.height) * anchor.y).rounded(.down)), size: kept)
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
