#if canImport(ImageIO)
internal import CacheCore
internal import CoreGraphics
internal import Foundation
internal import ImageIO

/// An image file that ImageIO reads.
// Proof of `@unchecked Sendable`: a source with all its bytes is never changed again, and ImageIO's functions that read
// it may be called from any thread.
struct ImageIOSource: @unchecked Sendable {
  private let source: CGImageSource
  private let format: ImageFormat

  init(_ data: Data, _ format: ImageFormat) throws(CacheError) {
    // No caching by the source: the caller caches the decoded pixels.
    let options = [kCGImageSourceShouldCache: false] as CFDictionary
    guard let source = CGImageSourceCreateWithData(data as CFData, options), CGImageSourceGetType(source) != nil,
      CGImageSourceGetCount(source) > 0
    else { throw CacheError(.unsupported, reason: "\(format): ImageIO has no decoder for this format, or the header is damaged") }
    self.source = source
    self.format = format
  }

  var count: Int { CGImageSourceGetCount(source) }

  func properties(ofFrame index: Int) -> [CFString: Any] {
    CGImageSourceCopyPropertiesAtIndex(source, index, nil) as? [CFString: Any] ?? [:]
  }

  /// Returns a frame: upright, in sRGB, in exactly the given size.
  func pixels(ofFrame index: Int, size: PixelSize, strict: Bool, _ watch: DecodingDeadline) throws(CacheError) -> PixelBuffer {
    if let end = watch.end { throw end }
    if strict, CGImageSourceGetStatusAtIndex(source, index) != .statusComplete {
      throw CacheError(.decodingFailed, reason: "\(format): the image is damaged or truncated")
    }
    // "Thumbnail" is ImageIO's term for any size. ImageIO decodes to that size if the codec can, and applies the
    // orientation.
    let options: [CFString: Any] = [
      kCGImageSourceCreateThumbnailFromImageAlways: true, kCGImageSourceCreateThumbnailWithTransform: true,
      kCGImageSourceThumbnailMaxPixelSize: max(size.width, size.height), kCGImageSourceShouldCacheImmediately: true,
    ]
    guard let image = CGImageSourceCreateThumbnailAtIndex(source, index, options as CFDictionary),
      let pixels = PixelBuffer(drawing: image, size: size)
    else { throw CacheError(.decodingFailed, reason: "\(format): the image is damaged or truncated") }
    if let end = watch.end { throw end }
    return pixels
  }

  /// The number of times the frames are shown; `nil` means forever.
  var loopCount: Int? {
    let properties = CGImageSourceCopyProperties(source, nil) as? [CFString: Any] ?? [:]
    for (dictionary, key) in [
      (kCGImagePropertyGIFDictionary, kCGImagePropertyGIFLoopCount),
      (kCGImagePropertyPNGDictionary, kCGImagePropertyAPNGLoopCount),
      (kCGImagePropertyWebPDictionary, kCGImagePropertyWebPLoopCount),
    ] {
      if let entries = properties[dictionary] as? [CFString: Any], let count = entries[key] as? Int, count > 0 { return count }
    }
    return nil
  }

  func delay(ofFrame index: Int) -> Duration {
    let properties = properties(ofFrame: index)
    for (dictionary, key) in [
      (kCGImagePropertyGIFDictionary, kCGImagePropertyGIFUnclampedDelayTime),
      (kCGImagePropertyPNGDictionary, kCGImagePropertyAPNGUnclampedDelayTime),
      (kCGImagePropertyWebPDictionary, kCGImagePropertyWebPUnclampedDelayTime),
    ] {
      if let entries = properties[dictionary] as? [CFString: Any], let seconds = entries[key] as? Double {
        return ImageHeader.delay(.seconds(min(seconds, 1_000_000)))
      }
    }
    return ImageHeader.delay(.zero)
  }
}
#endif
