public import CacheCore
public import CacheManager
public import ImageCodecs

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension ResourceManager {
  /// Loads a picture: decoded, upright, in sRGB.
  ///
  /// ```swift
  /// let image = try await manager.image(at: url)
  /// let avatar = try await manager.image(at: url, .fill(96, 96) + .circle)
  /// let thumbnail = try await manager.image(at: url, .resize(.fit(400, 400)), storedAs: .webp)
  /// ```
  ///
  /// Pictures are kept in memory as they were asked for, beside the bytes they were made of; a changed original makes them all anew. On disk the original is kept, and
  /// with an encoder the picture too. For where it came from, and how old it
  /// is: `load(_:as:)` with `.image()`.
  ///
  /// - Parameters:
  ///   - url: what to load.
  ///   - processor: what is done to it.
  ///   - scale: how many of its pixels make a point.
  ///   - encoder: what it is stored as; nil: only the original is stored. What becomes of either, `RequestOptions.storagePolicy` says.
  ///   - options: what this load sets for itself.
  /// - Throws: ``CacheError``: why it could not be loaded, or why what was loaded is no picture.
  public func image(
    at url: URL, _ processor: ImageProcessor = .none, scale: Double = 1, storedAs encoder: ImageEncoder? = nil,
    options: RequestOptions = RequestOptions()
  ) async throws(CacheError) -> DecodedImage {
    try await load(url, as: .image(processor, scale: scale, storedAs: encoder), options: options).value
  }
}
