#if canImport(ImageIO)
internal import CacheCore
internal import CoreGraphics
internal import Foundation
internal import ImageIO

/// A file as ImageIO reads it.
// Proof of `@unchecked Sendable`: a source over bytes that are all there is never changed again, and ImageIO's functions on it
// may be called from any thread.
struct ImageIOSource: @unchecked Sendable {
  private let source: CGImageSource
  private let format: ImageFormat

  init(_ data: Data, _ format: ImageFormat) throws(CacheError) {
    // Nothing is kept in the source: what is decoded is kept outside, once.
    let options = [kCGImageSourceShouldCache: false] as CFDictionary
    guard let source = CGImageSourceCreateWithData(data as CFData, options), CGImageSourceGetType(source) != nil,
      CGImageSourceGetCount(source) > 0
    else { throw CacheError(.unsupported, reason: "\(format): ImageIO here has no decoder for it, or its header is damaged") }
    self.source = source
    self.format = format
  }

  var count: Int { CGImageSourceGetCount(source) }

  func properties(ofFrame index: Int) -> [CFString: Any] {
    CGImageSourceCopyPropertiesAtIndex(source, index, nil) as? [CFString: Any] ?? [:]
  }

  /// A frame, upright, in sRGB, exactly so large.
  func pixels(ofFrame index: Int, size: PixelSize, strict: Bool, _ watch: DecodingDeadline) throws(CacheError) -> PixelBuffer {
    if let end = watch.end { throw end }
    if strict, CGImageSourceGetStatusAtIndex(source, index) != .statusComplete {
      throw CacheError(.decodingFailed, reason: "\(format): the picture is damaged or cut short")
    }
    // "Thumbnail" is ImageIO's word for any size: it shrinks while it decodes where the codec can, and turns the picture upright.
    let options: [CFString: Any] = [
      kCGImageSourceCreateThumbnailFromImageAlways: true, kCGImageSourceCreateThumbnailWithTransform: true,
      kCGImageSourceThumbnailMaxPixelSize: max(size.width, size.height), kCGImageSourceShouldCacheImmediately: true,
    ]
    guard let image = CGImageSourceCreateThumbnailAtIndex(source, index, options as CFDictionary),
      let pixels = PixelBuffer(drawing: image, size: size)
    else { throw CacheError(.decodingFailed, reason: "\(format): the picture is damaged or cut short") }
    if let end = watch.end { throw end }
    return pixels
  }

  /// How often the frames are shown; nil: for ever.
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
