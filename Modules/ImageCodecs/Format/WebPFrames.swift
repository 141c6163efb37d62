#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// Counts a WebP's frames by its chunks (RFC 9649 §2.7.1.2, `ANMF`), without decoding one: the codec looks for each from the beginning, so that its header alone takes a
/// time that grows with the square of their number.
enum WebPFrames {
  static func count(_ data: Data) -> Int {
    data.withUnsafeBytes { bytes in
      var (next, frames) = (12, 0)
      while next + 8 <= bytes.count {
        if bytes[next..<next + 4].elementsEqual("ANMF".utf8) { frames += 1 }
        let length = Int(UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: next + 4, as: UInt32.self)))
        // A chunk of odd length is followed by one byte more.
        next += 8 + length + length % 2
      }
      return frames
    }
  }
}
