public import CacheCore

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension ImageEncoder: ResourceEncoder {
  public var id: ComponentID { ComponentID(Self.self, parameters: parameters) }

  /// Returns `false` if later loads would lose information: the frames of an animated image, alpha that the format
  /// lacks (JPEG) or nearly lacks (GIF), or the rest of a partially decoded image.
  public func canEncode(_ value: DecodedImage) -> Bool {
    guard value.frameCount == 1, !value.isPartial else { return false }
    return !value.buffer.channels.hasAlpha || ![.jpeg, .gif].contains(format(for: value))
  }

  /// Returns the file to store.
  ///
  /// - Throws: The errors of ``encode(_:)``, and `CacheError.Code.encodingFailed` if the file exceeds the decoder's
  ///   limit (``ImageLimits/standard``).
  public func encode(_ value: DecodedImage, _ metadata: StoredMetadata) throws(CacheError) -> Data {
    let (file, limit) = (try encode(value), ImageLimits.standard.bytes)
    guard file.count <= limit else {
      throw CacheError(.encodingFailed, reason: "\(format): the file has \(file.count) bytes, the limit is \(limit)")
    }
    return file
  }
}
