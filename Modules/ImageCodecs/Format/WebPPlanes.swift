#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// What a codec makes of a still WebP in full size, however small the picture is to become: what is compressed without loss,
/// colours or alpha.
enum WebPPlanes {
  /// In bytes for each pixel; 0 where colours and alpha are decoded to the size that is asked for.
  static func bytesPerPixel(_ data: Data) -> Int {
    var count = 0
    WebPChunks.walk(data) { name, content in
      if name.elementsEqual("VP8L".utf8) { count = max(count, 4) }
      // Alpha (RFC 9649 §2.7.1.4) has a plane of its own, made of a lossless picture where the first two bits don't say that it
      // is there as it is.
      if name.elementsEqual("ALPH".utf8), let first = content.first { count = max(count, first & 3 == 0 ? 1 : 5) }
    }
    return count
  }
}
