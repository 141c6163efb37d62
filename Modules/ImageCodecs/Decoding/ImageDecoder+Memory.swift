public import CacheCore

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension ImageDecoder {
  /// The pixels that come into being by the header's word: those of the picture as it is to become, and of what the codec decodes before it is made smaller. 0 for what
  /// is no picture.
  public func workingMemory(for data: Data, _ metadata: StoredMetadata) -> Int {
    guard let header = try? EngineRoom.read(data, limits, forDecoding: false).header else { return 0 }
    let target = size?.size(of: header.size) ?? header.size
    var asked = header
    asked.size = target
    // What is refused takes nothing.
    guard (try? limits.check(asked)) != nil else { return 0 }
    let channels = (header.colorSpace == .gray ? 1 : 3) + (header.hasAlpha ? 1 : 0)
    let decoded = Double(header.size.area) / Self.shrink(from: header, to: target) * Double(max(header.bitDepth / 8, 1))
    // What frames are laid over, a copy of it, and a frame.
    let frames = header.frameCount > 1 ? Double(header.size.area) * 12 : 0
    return Int(clamping: (decoded + (target == header.size ? 0 : Double(target.area))) * Double(channels) + frames)
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
