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
    // In a TIFF, HEIC or ICO file, the images are pages, or sizes of one image.
    let frameCount = [.gif, .png, .webp].contains(format) ? max(source.count, 1) : 1
    let model = properties[kCGImagePropertyColorModel] as? String
    let name = properties[kCGImagePropertyProfileName] as? String
    let plain = model == "CMYK" ? ImageHeader.cmyk : model == "Gray" ? ImageHeader.gray : ImageHeader.sRGB
    return ImageHeader(
      format: format, size: orientation.applied(to: PixelSize(width, height)), orientation: orientation, frameCount: frameCount,
      delays: frameCount == 1 ? [] : (0..<frameCount).map { source.delay(ofFrame: $0) },
      loopCount: frameCount == 1 ? nil : source.loopCount, hasAlpha: properties[kCGImagePropertyHasAlpha] as? Bool ?? false,
      colorSpace: name ?? plain, bitDepth: properties[kCGImagePropertyDepth] as? Int ?? 8, byteCount: data.count)
  }

  func pixels(
    of data: Data, _ header: ImageHeader, size: PixelSize, partial: Bool, watch: DecodingDeadline
  ) throws(CacheError) -> PixelBuffer {
    try ImageIOSource(data, header.format).pixels(ofFrame: 0, size: size, strict: !partial, watch)
  }

  func frames(
    of data: Data, _ header: ImageHeader, size: PixelSize, partial: Bool, limits: ImageLimits
  ) throws(CacheError) -> any FrameSource {
    ImageIOFrames(
      source: try ImageIOSource(data, header.format), format: header.format, size: size, strict: !partial, limits: limits)
  }

  func resize(_ pixels: PixelBuffer, to size: PixelSize, _ watch: DecodingDeadline) throws(CacheError) -> PixelBuffer {
    guard let image = pixels.makeCGImage(), let resized = PixelBuffer(drawing: image, size: size) else {
      throw CacheError(.decodingFailed, reason: "an image of \(pixels.size) cannot be resized to \(size)")
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
      let middle = (x: box.midX * Double(pixels.size.width), y: (1 - box.midY) * Double(pixels.size.height))
      let (left, top) = (Int(clamping: middle.x) - size.width / 2, Int(clamping: middle.y) - size.height / 2)
      return PixelRect(
        x: min(max(left, 0), pixels.size.width - size.width), y: min(max(top, 0), pixels.size.height - size.height), size: size)
    }
    #endif
    return pixels.size.crop(to: size)
  }
}

/// The frames of an animated image. ImageIO composes them.
struct ImageIOFrames: FrameSource {
  let source: ImageIOSource
  let format: ImageFormat
  let size: PixelSize
  let strict: Bool
  let limits: ImageLimits

  var cost: Int { 0 }

  func frame(_ index: Int) throws(CacheError) -> PixelBuffer {
    try source.pixels(ofFrame: index, size: size, strict: strict, DecodingDeadline(limits, format))
  }
}
#endif
