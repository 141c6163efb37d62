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

  /// The number of images in the file.
  private var count: Int { CGImageSourceGetCount(source) }

  /// The number of frames. In a TIFF, HEIC or ICO file, the images are pages, or sizes of one image.
  var frameCount: Int { [.gif, .png, .webp].contains(format) ? max(count, 1) : 1 }

  func properties(ofFrame index: Int) -> [CFString: Any] {
    CGImageSourceCopyPropertiesAtIndex(source, index, nil) as? [CFString: Any] ?? [:]
  }

  /// Returns a frame: upright, in sRGB, in exactly the given size.
  ///
  /// - Parameter original: The upright size of the file.
  func pixels(
    ofFrame index: Int, from original: PixelSize, size: PixelSize, strict: Bool, _ watch: DecodingDeadline
  ) throws(CacheError) -> PixelBuffer {
    try draw(index, from: original, size: size, strict: strict, watch) { image, channels in
      PixelBuffer(drawing: image, size: size, channels: channels)
    }
  }

  /// Returns the first frame for the screen.
  func screenRows(from original: PixelSize, size: PixelSize, _ watch: DecodingDeadline) throws(CacheError) -> ScreenRows {
    try draw(0, from: original, size: size, strict: true, watch) { image, channels in
      ScreenRows(drawing: image, size: size, isOpaque: !channels.hasAlpha)
    }
  }

  private func draw<Drawn>(
    _ index: Int, from original: PixelSize, size: PixelSize, strict: Bool, _ watch: DecodingDeadline,
    _ drawing: (CGImage, PixelBuffer.Channels) -> Drawn?
  ) throws(CacheError) -> Drawn {
    if let end = watch.end { throw end }
    if strict, !isComplete(index) { throw damage }
    // "Thumbnail" is ImageIO's term for any size. ImageIO decodes to that size if the codec can, and applies the
    // orientation.
    let options: [CFString: Any] = [
      kCGImageSourceCreateThumbnailFromImageAlways: true, kCGImageSourceCreateThumbnailWithTransform: true,
      kCGImageSourceThumbnailMaxPixelSize: original.decodedSide(for: size), kCGImageSourceShouldCacheImmediately: true,
    ]
    guard let image = CGImageSourceCreateThumbnailAtIndex(source, index, options as CFDictionary) else { throw damage }
    guard let drawn = drawing(image, channels(ofFrame: index, as: image)) else {
      throw CacheError(.imageLimitExceeded, reason: "not enough memory for an image of \(size) pixels")
    }
    if let end = watch.end { throw end }
    return drawn
  }

  private var damage: CacheError { CacheError(.decodingFailed, reason: "\(format): the image is damaged or truncated") }

  private func isComplete(_ index: Int) -> Bool {
    ImageInspector.isComplete(
      frame: CGImageSourceGetStatusAtIndex(source, index) == .statusComplete, isLast: index == count - 1,
      file: CGImageSourceGetStatus(source) == .statusComplete)
  }

  private func channels(ofFrame index: Int, as image: CGImage) -> PixelBuffer.Channels {
    let properties = properties(ofFrame: index)
    let isGray = image.isGray || properties[kCGImagePropertyColorModel] as? String == "Gray"
    // The properties of a frame describe only its own part of the canvas.
    let fileAlpha = frameCount == 1 ? properties[kCGImagePropertyHasAlpha] as? Bool : nil
    return PixelBuffer.Channels(isGray: isGray, decodedAlpha: image.hasAlpha, fileAlpha: fileAlpha)
  }

  /// The number of times the frames are shown; `nil` means forever.
  var loopCount: Int? {
    let properties = CGImageSourceCopyProperties(source, nil) as? [CFString: Any] ?? [:]
    let keys = [
      (kCGImagePropertyGIFDictionary, kCGImagePropertyGIFLoopCount),
      (kCGImagePropertyPNGDictionary, kCGImagePropertyAPNGLoopCount),
      (kCGImagePropertyWebPDictionary, kCGImagePropertyWebPLoopCount),
    ]
    let stated = keys.lazy.compactMap { (properties[$0] as? [CFString: Any])?[$1] as? Int }.first
    return ImageHeader.loopCount(stated: stated, format)
  }

  func delay(ofFrame index: Int) -> Duration {
    let properties = properties(ofFrame: index)
    for (dictionary, key) in [
      (kCGImagePropertyGIFDictionary, kCGImagePropertyGIFUnclampedDelayTime),
      (kCGImagePropertyPNGDictionary, kCGImagePropertyAPNGUnclampedDelayTime),
      (kCGImagePropertyWebPDictionary, kCGImagePropertyWebPUnclampedDelayTime),
    ] {
      if let entries = properties[dictionary] as? [CFString: Any], let seconds = entries[key] as? Double {
        return ImageHeader.delay(seconds: seconds)
      }
    }
    return ImageHeader.delay(.zero)
  }
}
#endif
