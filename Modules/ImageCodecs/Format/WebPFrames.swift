#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The frame count of a WebP, from its `ANMF` chunks (RFC 9649 §2.7.1.2). The codec searches for each frame from the
/// beginning, so even reading its header takes quadratic time.
enum WebPFrames {
  static func count(_ data: Data) -> Int {
    var frames = 0
    WebPChunks.walk(data) { name, _ in if name.elementsEqual("ANMF".utf8) { frames += 1 } }
    return frames
  }
}
