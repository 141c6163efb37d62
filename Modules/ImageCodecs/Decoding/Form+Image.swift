public import CacheCore

extension Form where Value == DecodedImage {
  /// Pictures, decoded by the usual decoder, then processed.
  ///
  /// ```swift
  /// let resource = try await manager.load(url, as: .image(.resize(.fit(400, 400)) + .gray))
  /// print(resource.value.size, resource.source)
  /// ```
  ///
  /// Where a processor's first step makes pictures smaller, the decoder does that, and a codec that can never makes the full size.
  ///
  /// - Parameters:
  ///   - processor: what is done to them.
  ///   - scale: how many of their pixels make a point.
  public static func image(_ processor: ImageProcessor = .none, scale: Double = 1) -> Form {
    var decoder = ImageDecoder(scale: scale)
    var steps = processor.steps
    if let sizing = steps.first?.sizing {
      decoder.size = sizing
      steps.removeFirst()
    }
    return Form(decoder: decoder, processors: steps.isEmpty ? [] : [ImageProcessor(steps)])
  }

  /// Pictures of a size, decoded by the usual decoder.
  ///
  /// - Parameters:
  ///   - size: how large they become.
  ///   - scale: how many of their pixels make a point.
  public static func image(size: ImageSizing, scale: Double = 1) -> Form { image(.resize(size), scale: scale) }
}
