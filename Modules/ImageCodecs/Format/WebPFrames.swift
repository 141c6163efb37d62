#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// Counts a WebP's frames by its chunks (RFC 9649 §2.7.1.2, `ANMF`), without decoding one: the codec looks for each from the
/// beginning, so that its header alone takes a time that grows with the square of their number.
enum WebPFrames {
  static func count(_ data: Data) -> Int {
    var frames = 0
    WebPChunks.walk(data) { name, _ in if name.elementsEqual("ANMF".utf8) { frames += 1 } }
    return frames
  }
}
