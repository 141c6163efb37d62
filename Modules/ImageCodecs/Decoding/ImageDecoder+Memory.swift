public import CacheCore

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension ImageDecoder {
  /// The pixels that come into being by the header's word: those of the picture as it is to become, and of what the codec decodes
  /// before it is made smaller; and what it holds in full size all the same: a progressive JPEG's coefficients, what a WebP has
  /// without loss, an AVIF's planes, the pictures that an SVG carries. 0 for what is no picture.
  public func workingMemory(for data: Data, _ metadata: StoredMetadata) -> Int {
    guard let reading = try? ImageInspector.read(data, limits, forDecoding: false) else { return 0 }
    let header = reading.header
    let target = size?.size(of: header.size) ?? header.size
    var asked = header
    asked.size = target
    // What is refused takes nothing.
    guard (try? limits.check(asked)) != nil else { return 0 }
    let channels = (header.colorSpace == ImageHeader.gray ? 1 : 3) + (header.hasAlpha ? 1 : 0)
    let decoded = Double(header.size.area) / Self.shrink(from: header, to: target) * Double(max(header.bitDepth / 8, 1))
    // What frames are laid over, a copy of it, and a frame.
    let frames = header.frameCount > 1 ? Double(header.size.area) * 12 : 0
    let pixels = (decoded + (target == header.size ? 0 : Double(target.area))) * Double(channels)
    return Int(clamping: pixels + frames + Self.heldInFull(data, reading))
  }

  /// What a codec holds in full size, however small the picture is to become, in bytes.
  private static func heldInFull(_ data: Data, _ reading: ImageInspector.Reading) -> Double {
    let header = reading.header
    let area = Double(header.size.area)
    return switch header.format {
    case .jpeg: Double(JPEGCoefficients.byteCount(data))
    case .webp: header.isAnimated ? 0 : area * Double(WebPPlanes.bytesPerPixel(data))
    // Its planes, the decoder's and a copy, with colours at half the size in both directions, as most have them.
    case .avif, .heic: area * 3 * Double(max(header.bitDepth / 8, 1))
    case .svg: reading.carriedMemory
    default: 0
    }
  }

  /// How many pixels of the file a codec makes one of while it decodes.
  private static func shrink(from header: ImageHeader, to target: PixelSize) -> Double {
    let side = min(
      Double(header.size.width) / Double(max(target.width, 1)), Double(header.size.height) / Double(max(target.height, 1)))
    switch header.format {
    case .jpeg: return [64, 16, 4].first { $0 <= side * side } ?? 1
    case .webp, .svg: return max(side * side, 1)
    default: return 1
    }
  }
}
