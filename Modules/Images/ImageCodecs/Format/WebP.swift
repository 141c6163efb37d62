#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The chunks of a WebP (RFC 9649 §2.3).
enum WebPChunks {
  /// Calls `visit` for each chunk, in order, with its name and the available part of its content.
  static func walk(
    _ data: Data, _ visit: (_ name: Slice<UnsafeRawBufferPointer>, _ content: Slice<UnsafeRawBufferPointer>) -> Void
  ) {
    data.withUnsafeBytes { bytes in
      var next = 12
      while next + 8 <= bytes.count {
        let length = Int(UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: next + 4, as: UInt32.self)))
        visit(bytes[next..<next + 4], bytes[next + 8..<min(next + 8 + length, bytes.count)])
        // A padding byte follows a chunk of odd length.
        next += 8 + length + length % 2
      }
    }
  }
}

/// The frame count of a WebP, from its `ANMF` chunks (RFC 9649 §2.7.1.2). The codec searches for each frame from the
/// beginning, so even reading its header takes quadratic time.
enum WebPFrames {
  static func count(_ data: Data) -> Int {
    var frames = 0
    WebPChunks.walk(data) { name, _ in if name.elementsEqual("ANMF".utf8) { frames += 1 } }
    return frames
  }
}

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
