public import CacheCore

extension ResourceTransform where Value == DecodedImage {
  /// Pictures, decoded by the usual decoder, then processed.
  ///
  /// ```swift
  /// let resource = try await manager.load(url, as: .image(.resize(.fit(400, 400)) + .gray))
  /// print(resource.value.size, resource.source)
  /// ```
  ///
  /// Where a processor's first step makes pictures smaller, the decoder does that, and a codec that can never makes the full
  /// size.
  ///
  /// With an encoder a durable store keeps the processed picture too, as the load's `StoragePolicy` says, and a later process
  /// shows it without decoding the original:
  ///
  /// ```swift
  /// let thumbnail = ResourceTransform.image(.resize(.fit(400, 400)), storedAs: .webp)
  /// ```
  ///
  /// What its file would not hold (``ImageEncoder/canEncode(_:)``) is made of the original at each start. A picture that was
  /// stored has the header of its own file.
  ///
  /// - Parameters:
  ///   - processor: what is done to them.
  ///   - scale: how many of their pixels make a point.
  ///   - encoder: what they are stored as; nil: only their originals are stored.
  public static func image(
    _ processor: ImageProcessor = .none, scale: Double = 1, storedAs encoder: ImageEncoder? = nil
  ) -> ResourceTransform {
    let (decoder, rest) = processor.decoding(scale: scale)
    // One by one: what transforms have in common is then done once.
    let processors = rest.steps.map { ImageProcessor([$0]) }
    guard let encoder else { return ResourceTransform(decoder: decoder, processors: processors) }
    // What was stored has its size already.
    return ResourceTransform(decoder: decoder, processors: processors, encoder: encoder, restorer: ImageDecoder(scale: scale))
  }

  /// Pictures of a size, decoded by the usual decoder.
  ///
  /// - Parameters:
  ///   - size: how large they become.
  ///   - scale: how many of their pixels make a point.
  ///   - encoder: what they are stored as; nil: only their originals are stored.
  public static func image(size: ImageSizing, scale: Double = 1, storedAs encoder: ImageEncoder? = nil) -> ResourceTransform {
    image(.resize(size), scale: scale, storedAs: encoder)
  }
}

extension ImageProcessor {
  /// The decoder that carries out the first step where that is a resizing, and what is left to be done.
  package func decoding(scale: Double) -> (decoder: ImageDecoder, rest: ImageProcessor) {
    guard let sizing = steps.first?.sizing else { return (ImageDecoder(scale: scale), self) }
    return (ImageDecoder(size: sizing, scale: scale), ImageProcessor(Array(steps.dropFirst())))
  }
}
