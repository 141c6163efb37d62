public import CacheCore
public import CacheManager
public import ImageCodecs

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension ResourceManager {
  /// Loads and decodes an image, upright and in sRGB.
  ///
  /// ```swift
  /// let image = try await manager.image(for: url)
  /// let avatar = try await manager.image(for: url, .fill(96, 96) + .circle)
  /// let thumbnail = try await manager.image(for: url, .resize(.fit(400, 400)), storedAs: .automatic)
  /// ```
  ///
  /// The processed image is cached in memory beside the original bytes. The original is cached on disk. With an encoder, the
  /// processed image is stored on disk too. When the original changes, every image that was made from it is made again. Use
  /// `load(_:as:)` with `.image()` to obtain the source and the age of the image.
  ///
  /// - Parameters:
  ///   - url: The URL of the image.
  ///   - processor: The steps that change the image.
  ///   - scale: The pixels per point.
  ///   - limits: The limits beyond which an image is refused.
  ///   - encoder: The format in which the processed image is stored on disk, or `nil` to store only the original.
  ///     `RequestOptions.storagePolicy` decides which of the two is stored.
  ///   - options: The options of this load.
  /// - Throws: `CacheError` if the load fails or if the response is not an image.
  public func image(
    for url: URL, _ processor: ImageProcessor = .none, scale: Double = 1, limits: ImageLimits = .standard,
    storedAs encoder: ImageEncoder? = nil, options: RequestOptions = RequestOptions()
  ) async throws(CacheError) -> DecodedImage {
    try await load(url, as: .image(processor, scale: scale, limits: limits, storedAs: encoder), options: options).value
  }
}
