#if canImport(ImageIO) || VIPS
import CacheCore
import ImageFiles
import Testing

@testable import ImageCodecs

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Headers with extreme numbers")
struct HeaderFuzzTests {
  /// Numbers that are equal in each run (Knuth's MMIX).
  private struct SeededNumbers: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return (state >> 33) | (state << 31)
    }
  }

  /// One small file of each format.
  private static func samples() throws -> [Data] {
    var files: [Data] = []
    for format in [ImageFormat.jpeg, .png, .webp, .gif, .tiff, .avif] {
      if let file = try? ImageEncoder(format).encode(TestImages.quarters(8, 8, alpha: 90)) { files.append(file) }
    }
    files.append(TestImages.oriented(TestImages.profiled(files[0], ICCFile.swapped.bytes), 6))
    if TestImages.hasWebP {
      files.append(try WebPFile(frames: [TestImages.quarters(8, 8), TestImages.quarters(8, 8)], orientation: 6).data())
    }
    files.append(Data(ICCFile.swapped.bytes))
    return files
  }

  @Test("lengths, counts, sizes and offsets of any value are read without a trap")
  func extremes() throws {
    let extremes: [[UInt8]] = [
      [0x00], [0x7F], [0x80], [0xFF], [0xFF, 0xFF], [0x7F, 0xFF], [0xFF, 0x7F], [0x80, 0], [0, 0, 0, 0],
      [0xFF, 0xFF, 0xFF, 0xFF],
      [0x7F, 0xFF, 0xFF, 0xFF], [0xFF, 0xFF, 0xFF, 0x7F], [0x80, 0, 0, 0], [0, 0, 0, 1], [UInt8](repeating: 0xFF, count: 8),
      [0x7F] + [UInt8](repeating: 0xFF, count: 7),
    ]
    for (number, file) in try Self.samples().enumerated() {
      var numbers = SeededNumbers(state: UInt64(number))
      for _ in 0..<400 {
        var bytes = Array(file)
        for _ in 0..<Int.random(in: 1...3, using: &numbers) {
          let extreme = extremes[Int.random(in: 0..<extremes.count, using: &numbers)]
          let place = Int.random(in: 0..<min(bytes.count, 400), using: &numbers)
          bytes.replaceSubrange(place..<min(place + extreme.count, bytes.count), with: extreme)
        }
        if Bool.random(using: &numbers) { bytes.removeLast(Int.random(in: 0..<bytes.count, using: &numbers)) }
        let data = Data(bytes)
        _ = ImageFormat(of: data)
        _ = (GIFFrames(data), WebPFrames.count(data), PNGFrames.count(data), WebPPlanes.bytesPerPixel(data))
        _ = (APNGFile(data), JPEGScans.count(data), JPEGCoefficients.byteCount(data), HEIFDimensions(data))
        _ = (ICCProfile(bytes), AV1Sequence(bytes)?.hasOwnSize(frame: bytes), HEVCSequence.size(bytes))
        // Without limits, the sizes reach the code behind them.
        let open = ImageLimits { ($0.pixels, $0.side, $0.frames, $0.bytes) = (.max, .max, 1_000_000, .max) }
        _ = try? ImageHeader(of: data, limits: open)
        _ = ImageDecoder { $0.limits = open }.workingMemory(for: data)
      }
    }
  }
}
#endif
