#if canImport(ImageIO)
internal import CacheCore
internal import CoreGraphics
internal import Foundation
internal import ImageIO

extension ImageIOEngine {
  func encode(_ pixels: PixelBuffer, _ settings: ImageEncoder, _ watch: DecodingDeadline) throws(CacheError) -> Data {
    let unsupported = CacheError(.unsupported, reason: "\(settings.format): ImageIO has no encoder for this format")
    guard let kind = Self.uniformType(settings.format) else { throw unsupported }
    let file = NSMutableData()
    guard let destination = CGImageDestinationCreateWithData(file as CFMutableData, kind as CFString, 1, nil) else {
      throw unsupported
    }
    let shown = try settings.format == .jpeg ? pixels.flattened(onto: settings.background) : pixels
    let failure = CacheError(.encodingFailed, reason: "\(settings.format): the image cannot be encoded")
    guard let image = shown.makeCGImage() else { throw failure }
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
