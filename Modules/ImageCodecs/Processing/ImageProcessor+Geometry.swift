public import CacheCore

extension ImageProcessor {
  /// Makes the picture smaller (or larger, where the rule says so).
  ///
  /// As the first step of `ResourceTransform.image(_:)` it is the decoder's: where the codec can, the pixels of the full size
  /// never come into being.
  public static func resize(_ sizing: ImageSizing) -> Self {
    let step = ImageStep(name: "resize(\(sizing))", sizing: sizing) { pixels, watch throws(CacheError) in
      let size = sizing.size(of: pixels.size)
      if size == pixels.size { return pixels }
      try ImageLimits.standard.check(ImageHeader(format: .pixels, size: size))
      return try ImageInspector.engine().resize(pixels, to: size, watch)
    }
    return ImageProcessor([step])
  }

  /// Keeps a part of `width` × `height` pixels, where the anchor says. A side that is longer than the picture's is the picture's.
  public static func crop(_ width: Int, _ height: Int, anchor: ImageAnchor = .center) -> Self {
    let step = ImageStep(name: "crop(\(width)x\(height),\(anchor))") { pixels, _ throws(CacheError) in
      try pixels.part(pixels.size.crop(to: .atLeastOne(width, height), anchor: anchor))
    }
    return ImageProcessor([step])
  }

  /// Keeps a part, as far as it lies within the picture; one that lies outside altogether is
  /// `CacheError.Code.invalidConfiguration`.
  public static func crop(_ rect: PixelRect) -> Self {
    let step = ImageStep(name: "crop(\(rect.size.width)x\(rect.size.height)+\(rect.x)+\(rect.y))") {
      pixels, _ throws(CacheError) in
      let part = pixels.size.clipping(rect)
      guard !part.size.isEmpty else {
        throw CacheError(.invalidConfiguration, reason: "there is no part of \(rect) in a picture of \(pixels.size)")
      }
      return try pixels.part(part)
    }
    return ImageProcessor([step])
  }

  /// Keeps the part of `width` × `height` pixels that draws the eye, as the platform's engine sees it (libvips' "attention",
  /// Vision's saliency): not the same part everywhere.
  public static func crop(attention width: Int, _ height: Int) -> Self {
    let step = ImageStep(name: "attention(\(width)x\(height))") { pixels, _ throws(CacheError) in
      let centred = pixels.size.crop(to: .atLeastOne(width, height))
      if centred.size == pixels.size { return pixels }
      let found = try ImageInspector.engine().attention(in: pixels, size: centred.size)
      return try pixels.part(pixels.size.clipping(found))
    }
    return ImageProcessor([step])
  }

  /// Fills `width` × `height` pixels: resized to cover them, the rest cut off.
  public static func fill(_ width: Int, _ height: Int, anchor: ImageAnchor = .center) -> Self {
    resize(.fill(width, height)) + crop(width, height, anchor: anchor)
  }

  /// Turns by quarters of a turn, clockwise; a negative number, anticlockwise.
  public static func rotate(quarterTurns: Int) -> Self {
    let turns = ((quarterTurns % 4) + 4) % 4
    let orientation: ImageOrientation = [.up, .right, .down, .left][turns]
    let step = ImageStep(name: "turn(\(turns))") { pixels, _ throws(CacheError) in try pixels.upright(from: orientation) }
    return ImageProcessor([step])
  }

  /// Mirrors left to right.
  public static let flipHorizontally = flip("horizontal", .upMirrored)

  /// Mirrors top to bottom.
  public static let flipVertically = flip("vertical", .downMirrored)

  private static func flip(_ name: String, _ orientation: ImageOrientation) -> Self {
    ImageProcessor([ImageStep(name: "flip(\(name))") { pixels, _ throws(CacheError) in try pixels.upright(from: orientation) }])
  }

  /// Whatever `work` does to the pixels. `id` tells it from every other work, with all its parameters: it stands in cache keys.
  public static func custom(
    _ id: String, _ work: @escaping @Sendable (PixelBuffer) throws(CacheError) -> PixelBuffer
  ) -> Self {
    ImageProcessor([ImageStep(name: "custom(\(id.utf8.count):\(id))") { pixels, _ throws(CacheError) in try work(pixels) }])
  }
}
