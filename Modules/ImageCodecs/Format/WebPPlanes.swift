#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The planes that a codec decodes in full size from a still WebP, whatever the target size: losslessly compressed
/// colors and alpha.
enum WebPPlanes {
  /// Returns the bytes per pixel, or 0 if colors and alpha are decoded to the target size.
  static func bytesPerPixel(_ data: Data) -> Int {
    var count = 0
    WebPChunks.walk(data) { name, content in
      if name.elementsEqual("VP8L".utf8) { count = max(count, 4) }
      // Alpha (RFC 9649 §2.7.1.4) has a separate plane. Unless the first two bits declare it uncompressed, it is
      // decoded from a lossless image.
      if name.elementsEqual("ALPH".utf8), let first = content.first { count = max(count, first & 3 == 0 ? 1 : 5) }
    }
    return count
  }
}
