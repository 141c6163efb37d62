#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The frame count of a PNG, from its chunks without decoding (PNG, third edition, §11.3.2). `acTL` declares the count,
/// and each frame has an `fcTL`.
enum PNGFrames {
  static func count(_ data: Data) -> Int {
    data.withUnsafeBytes { bytes in
      var (next, frames, said) = (8, 0, 0)
      while next + 8 <= bytes.count {
        let kind = bytes[next + 4..<next + 8]
        if kind.elementsEqual("fcTL".utf8) { frames += 1 }
        if kind.elementsEqual("acTL".utf8), next + 12 <= bytes.count { said = max(said, number(bytes, next + 8)) }
        next += 12 + number(bytes, next)
      }
      return max(frames, said)
    }
  }

  private static func number(_ bytes: UnsafeRawBufferPointer, _ start: Int) -> Int {
    Int(UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: start, as: UInt32.self)))
  }
}
