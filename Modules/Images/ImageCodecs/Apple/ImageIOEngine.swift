#if canImport(ImageIO)
internal import CacheCore
internal import CoreGraphics
internal import Foundation
internal import ImageIO

#if canImport(Vision)
internal import Vision
#endif

/// The engine for Apple platforms.
struct ImageIOEngine: ImageEngine {
  func header(of data: Data, _ format: ImageFormat) throws(CacheError) -> ImageHeader {
    let source = try ImageIOSource(data, format)
    let properties = source.properties(ofFrame: 0)
    guard let width = properties[kCGImagePropertyPixelWidth] as? Int, let height = properties[kCGImagePropertyPixelHeight] as? Int
    else { throw CacheError(.decodingFailed, reason: "\(format): the header is damaged or truncated") }
    let orientation = (properties[kCGImagePropertyOrientation] as? Int).flatMap(ImageOrientation.init) ?? .up
    let frameCount = source.frameCount
    let model = properties[kCGImagePropertyColorModel] as? String
    let name = properties[kCGImagePropertyProfileName] as? String
    let plain = model == "CMYK" ? ImageHeader.cmyk : model == "Gray" ? ImageHeader.gray : ImageHeader.sRGB
    return ImageHeader(
      format: format, size: orientation.applied(to: PixelSize(width, height)), orientation: orientation, frameCount: frameCount,
      delays: frameCount == 1 ? [] : (0..<frameCount).map { source.delay(ofFrame: $0) },
      loopCount: frameCount == 1 ? nil : source.loopCount, hasAlpha: properties[kCGImagePropertyHasAlpha] as? Bool ?? false,
      colorSpace: name ?? plain, bitDepth: ImageHeader.decodedDepth(ofStored: properties[kCGImagePropertyDepth] as? Int ?? 8),
      byteCount: data.count)
  }

  func pixels(
    of data: Data, _ header: ImageHeader, size: PixelSize, partial: Bool, fast: Bool, watch: DecodingDeadline
  ) throws(CacheError) -> PixelBuffer {
    try ImageIOSource(data, header.format).pixels(ofFrame: 0, from: header.size, size: size, strict: !partial, watch)
  }

  func screenRows(
    of data: Data, _ header: ImageHeader, size: PixelSize, watch: DecodingDeadline
  ) throws(CacheError) -> ScreenRows? {
    try ImageIOSource(data, header.format).screenRows(from: header.size, size: size, watch)
  }

  /// The image of ImageIO and the bitmap in which it is drawn.
  var drawingBytesPerPixel: Int { 8 }

  func frames(
    of data: Data, _ header: ImageHeader, size: PixelSize, partial: Bool, limits: ImageLimits
  ) throws(CacheError) -> any FrameSource {
    ImageIOFrames(
      source: try ImageIOSource(data, header.format), header: header, size: size, strict: !partial, limits: limits)
  }

  func resize(_ pixels: PixelBuffer, to size: PixelSize, _ watch: DecodingDeadline) throws(CacheError) -> PixelBuffer {
    guard let image = pixels.makeCGImage(), let resized = PixelBuffer(drawing: image, size: size, channels: pixels.channels)
    else {
      throw CacheError(.imageLimitExceeded, reason: "not enough memory for an image of \(size) pixels")
    }
    if let end = watch.end { throw end }
    return resized
  }
}

extension ImageIOEngine {
  func attention(in pixels: PixelBuffer, size: PixelSize) throws(CacheError) -> PixelRect {
    #if canImport(Vision)
    let request = VNGenerateAttentionBasedSaliencyImageRequest()
    if let image = pixels.makeCGImage(), (try? VNImageRequestHandler(cgImage: image).perform([request])) != nil,
      let box = request.results?.first?.salientObjects?.first?.boundingBox
    {
      // Vision's coordinates range from 0 to 1 and start at the lower edge.
      return pixels.size.crop(to: size, around: (x: Double(box.midX), y: 1 - Double(box.midY)))
    }
    #endif
    return pixels.size.crop(to: size)
  }
}

/// The frames of an animated image. ImageIO composes them.
struct ImageIOFrames: FrameSource {
  let source: ImageIOSource
  let header: ImageHeader
  let size: PixelSize
  let strict: Bool
  let limits: ImageLimits

  var cost: Int { 0 }

  func frame(_ index: Int) throws(CacheError) -> PixelBuffer {
    try source.pixels(
      ofFrame: index, from: header.size, size: size, strict: strict, DecodingDeadline(limits, header.format))
  }
}

extension ImageIOEngine {
  func canEncode(_ format: ImageFormat) -> Bool {
    Self.uniformType(format).map(Self.writableTypes.contains) ?? false
  }

  func encode(_ pixels: PixelBuffer, _ settings: ImageEncoder, _ watch: DecodingDeadline) throws(CacheError) -> Data {
    let unsupported = CacheError(.unsupported, reason: "\(settings.format): ImageIO has no encoder for this format")
    guard let kind = Self.uniformType(settings.format) else { throw unsupported }
    let file = NSMutableData()
    guard let destination = CGImageDestinationCreateWithData(file as CFMutableData, kind as CFString, 1, nil) else {
      throw unsupported
    }
    let shown = try settings.format == .jpeg ? pixels.flattened(onto: settings.background) : pixels
    let failure = CacheError(.encodingFailed, reason: "\(settings.format): the image cannot be encoded")
    guard let image = shown.makeCGImage(encodedAs: settings.format) else { throw failure }
    var options: [CFString: Any] = [
      kCGImageDestinationLossyCompressionQuality: settings.isLossless ? 1.0 : Double(settings.quality) / 100
    ]
    if settings.isProgressive {
      options[kCGImagePropertyJFIFDictionary] = [kCGImagePropertyJFIFIsProgressive: true]
      options[kCGImagePropertyPNGDictionary] = [kCGImagePropertyPNGInterlaceType: 1]
    }
    CGImageDestinationAddImage(destination, image, options as CFDictionary)
    guard CGImageDestinationFinalize(destination) else { throw failure }
    if let end = watch.end { throw end }
    return file as Data
  }

  private static let writableTypes = Set(CGImageDestinationCopyTypeIdentifiers() as? [String] ?? [])

  private static func uniformType(_ format: ImageFormat) -> String? {
    switch format {
    case .jpeg: "public.jpeg"
    case .png: "public.png"
    case .gif: "com.compuserve.gif"
    case .tiff: "public.tiff"
    case .heic: "public.heic"
    case .avif: "public.avif"
    case .webp: "org.webmproject.webp"
    case .jpegXL: "public.jpeg-xl"
    default: nil
    }
  }
}

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
