public import CacheCore

extension ImageProcessor {
  /// Resizes the image.
  ///
  /// As the first step of `ResourceTransform.image(_:)`, this is done by the decoder. Some codecs then never create the
  /// full-size pixels.
  public static func resize(_ sizing: ImageSizing) -> Self {
    let step = ImageStep(name: "resize(\(sizing))", sizing: sizing) { pixels, watch throws(CacheError) in
      let size = sizing.size(of: pixels.size)
      if size == pixels.size { return pixels }
      try ImageLimits.standard.check(ImageHeader(format: .pixels, size: size))
      return try ImageInspector.engine().resize(pixels, to: size, watch)
    }
    return ImageProcessor([step])
  }

  /// Crops to `width` × `height` pixels at the anchor. Each side is clamped to the image's.
  public static func crop(_ width: Int, _ height: Int, anchor: ImageAnchor = .center) -> Self {
    let step = ImageStep(name: "crop(\(width)x\(height),\(anchor))") { pixels, _ throws(CacheError) in
      try pixels.part(pixels.size.crop(to: .atLeastOne(width, height), anchor: anchor))
    }
    return ImageProcessor([step])
  }

  /// Crops to the part of `rect` within the image. If that part is empty, the step throws
  /// `CacheError.Code.invalidConfiguration`.
  public static func crop(_ rect: PixelRect) -> Self {
    let step = ImageStep(name: "crop(\(rect.size.width)x\(rect.size.height)+\(rect.x)+\(rect.y))") {
      pixels, _ throws(CacheError) in
      let part = pixels.size.clipping(rect)
      guard !part.size.isEmpty else {
        throw CacheError(.invalidConfiguration, reason: "the crop \(rect) is outside an image of \(pixels.size)")
      }
      return try pixels.part(part)
    }
    return ImageProcessor([step])
  }

  /// Crops to the most salient part of `width` × `height` pixels, as determined by the platform's engine (libvips'
  /// "attention", Vision's saliency). The results differ between platforms.
  public static func crop(attention width: Int, _ height: Int) -> Self {
    let step = ImageStep(name: "attention(\(width)x\(height))") { pixels, _ throws(CacheError) in
      let centered = pixels.size.crop(to: .atLeastOne(width, height))
      if centered.size == pixels.size { return pixels }
      let found = try ImageInspector.engine().attention(in: pixels, size: centered.size)
      return try pixels.part(pixels.size.clipping(found))
    }
    return ImageProcessor([step])
  }

  /// Fills `width` × `height` pixels: resizes the image to cover them and crops the rest.
  public static func fill(_ width: Int, _ height: Int, anchor: ImageAnchor = .center) -> Self {
    resize(.fill(width, height)) + crop(width, height, anchor: anchor)
  }

  /// Rotates by quarter turns, clockwise, or counterclockwise if the number is negative.
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

  /// Applies `work` to the pixels. `id` identifies the work with all its parameters, because it is part of cache keys.
  public static func custom(
    _ id: String, _ work: @escaping @Sendable (PixelBuffer) throws(CacheError) -> PixelBuffer
  ) -> Self {
    ImageProcessor([ImageStep(name: "custom(\(id.utf8.count):\(id))") { pixels, _ throws(CacheError) in try work(pixels) }])
  }
}
