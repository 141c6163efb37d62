public import CacheCore

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension ImageEncoder: ResourceEncoder {
  public var id: ComponentID { ComponentID(Self.self, parameters: parameters) }

  /// No for what later loads would miss: the frames of an animated picture, alpha where the format has none (JPEG) or next to
  /// none (GIF), and the rest of a picture that is there in part only.
  public func canEncode(_ value: DecodedImage) -> Bool {
    guard value.frameCount == 1, !value.isPartial else { return false }
    return !value.buffer.channels.hasAlpha || ![.jpeg, .gif].contains(format(for: value))
  }

  /// The file that is stored.
  ///
  /// - Throws: as ``encode(_:)``, and `CacheError.Code.encodingFailed` when the file is longer than a decoder takes
  ///   (``ImageLimits/standard``).
  public func encode(_ value: DecodedImage, _ metadata: StoredMetadata) throws(CacheError) -> Data {
    let (file, limit) = (try encode(value), ImageLimits.standard.bytes)
    guard file.count <= limit else {
      throw CacheError(.encodingFailed, reason: "\(format): the file has \(file.count) bytes, the limit is \(limit)")
    }
    return file
  }
}
