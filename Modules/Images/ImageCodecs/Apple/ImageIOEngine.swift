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
#endif
