#if Service
import CacheCore
import Foundation
import ImageCodecs
import ImageFiles

/// Small files without a defect, which the inputs damage.
struct ZooSamples {
  let png: Data
  let deepPNG: Data
  let animatedPNG: Data
  let jpeg: Data
  let progressiveJPEG: Data
  let gif: Data
  let tiff: Data
  let svg: Data
  /// A WebP, or `nil` if the system writes none.
  let webP: Data?
  let losslessWebP: Data?
  let animatedWebP: Data?
  /// An AVIF, or `nil` if the system writes none.
  let avif: Data?
  let heic = HEIFFile.heic

  init() throws {
    let (image, clear) = (try Self.gradient(60, 40), try Self.gradient(60, 40, alpha: true))
    png = try ImageEncoder(.png).encode(clear)
    let row = [[UInt8]](repeating: [9, 200, 77, 77, 200, 9, 128, 128], count: 8).flatMap { $0 }
    let profile: [UInt8] = Array("made\0".utf8) + [0] + PNGFile.zlib(ICCFile.swapped.bytes)
    deepPNG =
      PNGFile(width: 8, height: 8, depth: 16, colorType: 6, rows: Array(repeating: row, count: 8), chunks: [("iCCP", profile)])
      .data
    animatedPNG = AnimatedPNGFile(frames: [.init(color: RGBA(255, 0, 0)), .init(color: RGBA(0, 255, 0))]).data
    jpeg = try ImageEncoder(.jpeg).encode(image)
    progressiveJPEG = try Self.progressive(image)
    gif = GIFFile(width: 40, height: 30, frames: [(1, 10), (2, 0), (3, 7)], loops: 2).data
    tiff = try ImageEncoder(.tiff).encode(image)
    let embedded = try ImageEncoder(.png).encode(Self.gradient(4, 4)).base64EncodedString()
    svg = Data(
      """
      <?xml version="1.0" encoding="UTF-8"?><!DOCTYPE svg [<!ENTITY a "fill:url(#g)">]>
      <svg xmlns="http://www.w3.org/2000/svg" width="60" height="40"><style>rect { stroke: red } /* a */</style><!-- b -->
      <linearGradient id="g"><stop stop-color="blue"/></linearGradient><rect width="20" height="20" style="&a;"/>
      <filter id="f"><feGaussianBlur stdDeviation="2"/></filter><circle cx="30" cy="20" r="9" filter="url(#f)"/>
      <path d="M1 1 C 9 9 20 3 30 30 z" transform="rotate(10)"/><text x="5" y="30" font-size="12">abc</text>
      <image width="9" height="9" href="data:image/png;base64,\(embedded)"/></svg>
      """.utf8)
    if ImageEncoder.isWritten(.webp) {
      webP = try ImageEncoder(.webp).encode(image)
      losslessWebP = try Self.losslessWebP(clear)
      animatedWebP = try WebPFile(frames: [clear, image, clear], orientation: 6).data()
    } else {
      (webP, losslessWebP, animatedWebP) = (nil, nil, nil)
    }
    avif = ImageEncoder.isWritten(.avif) ? try ImageEncoder(.avif).encode(image) : nil
  }

  /// The files by their names.
  var files: [(name: String, file: Data)] {
    let optional: [(String, Data?)] = [
      ("WebP", webP), ("WebP lossless", losslessWebP), ("WebP animated", animatedWebP), ("AVIF", avif),
    ]
    return [
      ("PNG", png), ("PNG with 16 bits", deepPNG), ("PNG animated", animatedPNG), ("JPEG", jpeg),
      ("JPEG progressive", progressiveJPEG), ("GIF", gif), ("TIFF", tiff), ("SVG", svg), ("HEIC", heic),
    ] + optional.compactMap { name, file in file.map { (name, $0) } }
  }

  /// The files themselves. Not every system reads HEIC.
  var inputs: [ZooInput] {
    files.flatMap { name, file in
      ZooInput.family("good", name == "HEIC" ? .either : .image, [(name, file)])
    }
  }

  /// Returns an image with a gradient.
  static func gradient(_ width: Int, _ height: Int, alpha: Bool = false) throws -> DecodedImage {
    let step = alpha ? 4 : 3
    let pixels = PixelBuffer(size: PixelSize(width, height), channels: alpha ? .rgba : .rgb) { bytes in
      for index in bytes.indices {
        let (x, y) = (index / step % width, index / step / width)
        bytes[index] = UInt8(truncatingIfNeeded: [x * 255 / width, y * 255 / height, x ^ y, 255 - x][index % step])
      }
    }
    guard let pixels else { throw FailedCheck("there is not enough memory for an image") }
    return DecodedImage(pixels)
  }

  /// Returns an image of one color.
  static func plain(_ width: Int, _ height: Int, channels: PixelBuffer.Channels = .rgb) throws -> DecodedImage {
    guard let pixels = PixelBuffer(size: PixelSize(width, height), channels: channels, fill: { _ in }) else {
      throw FailedCheck("there is not enough memory for an image")
    }
    return DecodedImage(pixels)
  }

  static func progressive(_ image: DecodedImage) throws -> Data {
    var encoder = ImageEncoder(.jpeg)
    encoder.isProgressive = true
    return try encoder.encode(image)
  }

  static func losslessWebP(_ image: DecodedImage) throws -> Data {
    var encoder = ImageEncoder(.webp)
    encoder.isLossless = true
    return try encoder.encode(image)
  }
}
#endif
