public import CacheCore

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension ImageDecoder {
  /// The memory that decoding needs, estimated from the header. It includes the pixels of the result and the pixels
  /// that the codec decodes before it shrinks them. It also includes data that a codec stores in full size: the
  /// coefficients of a progressive JPEG, a lossless WebP, the planes of an AVIF, and the elements and images of an
  /// SVG. The result is 0 if the data is not an image.
  public func workingMemory(for data: Data, _ metadata: StoredMetadata) -> Int {
    workingMemory(for: data)?.bytes ?? 0
  }

  /// Returns the header, and the memory as in ``workingMemory(for:_:)``, or `nil` if the data is refused.
  package func workingMemory(for data: Data) -> (header: ImageHeader, bytes: Int)? {
    guard let reading = try? ImageInspector.read(data, limits, forDecoding: false) else { return nil }
    let header = reading.header
    let target = size?.size(of: header.size) ?? header.size
    var targetHeader = header
    targetHeader.size = target
    // A refused image needs no memory.
    guard (try? limits.check(targetHeader)) != nil else { return nil }
    let channels = (header.colorSpace == ImageHeader.gray ? 1 : 3) + (header.hasAlpha ? 1 : 0)
    let decoded = Double(header.size.area) / Self.shrink(from: header, to: target) * Double(max(header.bitDepth / 8, 1))
    // The canvas, a copy of it, and one frame.
    let frames = header.frameCount > 1 ? Double(header.size.area) * 12 : 0
    // Each layer of a drawing has its own pixels.
    let layers = reading.drawing.map { Double(target.area) * 4 * $0.work.layers } ?? 0
    let pixels = layers + (decoded + (target == header.size ? 0 : Double(target.area))) * Double(channels)
    return (header, Int(clamping: pixels + frames + Self.heldInFull(data, reading)))
  }

  /// The bytes that a codec stores in full size, whatever the target size.
  private static func heldInFull(_ data: Data, _ reading: ImageInspector.Reading) -> Double {
    let header = reading.header
    let area = Double(header.size.area)
    return switch header.format {
    case .jpeg: Double(JPEGCoefficients.byteCount(data))
    case .webp: header.isAnimated ? 0 : area * Double(WebPPlanes.bytesPerPixel(data))
    // The decoder's planes and a copy of them. Most files store chroma at half the size in both directions.
    case .avif, .heic: area * 3 * Double(max(header.bitDepth / 8, 1))
    case .svg: reading.drawing?.memory ?? 0
    default: 0
    }
  }

  /// The factor by which a codec shrinks each side while it decodes.
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
