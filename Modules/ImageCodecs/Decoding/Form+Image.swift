public import CacheCore

extension Form where Value == DecodedImage {
  /// Pictures, decoded by the usual decoder.
  ///
  /// ```swift
  /// let resource = try await manager.load(url, as: .image(size: .fit(400, 400)))
  /// print(resource.value.size, resource.source)
  /// ```
  ///
  /// - Parameters:
  ///   - size: how large they become; nil: as large as they are.
  ///   - scale: how many pixels make a point.
  ///   - processors: applied in order.
  public static func image(
    size: ImageSizing? = nil, scale: Double = 1, processors: [any ResourceProcessor<DecodedImage>] = []
  ) -> Form {
    Form(decoder: ImageDecoder(size: size, scale: scale), processors: processors)
  }
}
