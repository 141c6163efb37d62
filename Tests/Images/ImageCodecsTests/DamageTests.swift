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

/// Reproducible random numbers, so that a failure can be repeated (Knuth's MMIX).
private struct SeededNumbers: RandomNumberGenerator {
  var state: UInt64

  mutating func next() -> UInt64 {
    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
    // The lower bits of such numbers have short periods.
    return (state >> 32) << 32 | (state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407) >> 32
  }
}

@Suite("Damaged files")
struct DamageTests {
  @Test(
    "the last frame is complete if the file is, and every other frame also by its own status",
    arguments: [
      (true, false, false, true), (false, false, false, false), (false, false, true, false), (false, true, true, true),
      (true, true, false, false), (false, true, false, false),
    ])
  func frameStatus(frame: Bool, isLast: Bool, file: Bool, isComplete: Bool) {
    #expect(ImageInspector.isComplete(frame: frame, isLast: isLast, file: file) == isComplete)
  }

  /// One generated file of each kind.
  private static func samples() throws -> [(name: String, file: Data)] {
    var samples: [(String, Data)] = []
    for format in [ImageFormat.jpeg, .png, .webp, .gif, .tiff, .avif] {
      for image in [TestImages.quarters(40, 30), TestImages.quarters(40, 30, alpha: 90)] {
        var encoder = ImageEncoder(format)
        encoder.isProgressive = image.header.hasAlpha
        if let file = try? encoder.encode(image) { samples.append((format.name, file)) }
      }
    }
    let jpeg = try ImageEncoder(.jpeg).encode(TestImages.quarters(40, 30))
    samples.append(("turned JPEG with a profile", TestImages.oriented(TestImages.profiled(jpeg, ICCFile.swapped.bytes), 6)))
    let profile: [UInt8] = Array("made\0".utf8) + [0] + PNGFile.zlib(ICCFile.swapped.bytes)
    let row = [[UInt8]](repeating: [9, 200, 77, 77, 200, 9, 128, 128], count: 8).flatMap { $0 }
    let deep = PNGFile(
      width: 8, height: 8, depth: 16, colorType: 6, rows: Array(repeating: row, count: 8), chunks: [("iCCP", profile)])
    samples.append(("16-bit PNG with a profile", deep.data))
    samples.append(("animated GIF", GIFFile(width: 8, height: 8, frames: [(1, 10), (2, 0), (3, 7)], loops: 2).data))
    let frames = [TestImages.quarters(16, 12), TestImages.quarters(16, 12, alpha: 9), TestImages.quarters(16, 12)]
    if TestImages.hasWebP { samples.append(("animated WebP", try WebPFile(frames: frames, orientation: 6).data())) }
    let text = """
      <?xml version="1.0" encoding="UTF-8"?><!DOCTYPE svg [<!ENTITY a "fill:url(#g)">]>
      <svg xmlns="http://www.w3.org/2000/svg" width="40" height="30"><style>rect { stroke: red } /* a */</style><!-- b -->
      <linearGradient id="g"><stop stop-color="blue"/></linearGradient><rect width="20" height="20" style="&a;"/>
      <image width="9" height="9" href="data:image/png;base64,\(try ImageEncoder(.png).encode(TestImages.quarters(4, 4)).base64EncodedString())"/>
      </svg>
      """
    samples.append(("SVG", Data(text.utf8)))
    return samples
  }

  private static let decoders: [ImageDecoder] = [nil, ImageSizing.fit(12, 12)].flatMap { size in
    [false, true].map { isPartial in
      ImageDecoder {
        $0.size = size
        $0.allowsPartial = isPartial
        $0.limits.pixels = 300_000
        $0.limits.frames = 20
        $0.limits.time = .seconds(60)
      }
    }
  }

  /// Changes some bytes, or removes, duplicates or truncates a part.
  private func damage(_ file: Data, _ numbers: inout SeededNumbers) -> Data {
    var bytes = Array(file)
    // Headers are short and decide most, so damage them more often.
    let bound = Bool.random(using: &numbers) ? bytes.count : min(bytes.count, 80)
    switch Int.random(in: 0..<6, using: &numbers) {
    case 0: bytes.removeLast(Int.random(in: 1...bytes.count, using: &numbers))
    case 1:
      let start = Int.random(in: 0..<bytes.count, using: &numbers)
      bytes.removeSubrange(start..<min(start + Int.random(in: 1...40, using: &numbers), bytes.count))
    case 2:
      let start = Int.random(in: 0..<bytes.count, using: &numbers)
      bytes.insert(contentsOf: bytes[start..<min(start + 40, bytes.count)], at: start)
    default:
      for _ in 0..<Int.random(in: 1...4, using: &numbers) {
        let place = Int.random(in: 0..<bound, using: &numbers)
        let value = UInt8.random(in: 0...255, using: &numbers)
        bytes[place] = Bool.random(using: &numbers) ? value : bytes[place] ^ (1 << (value & 7))
      }
    }
    return Data(bytes)
  }

  @Test("a damaged file gives an image within the limits or an error with a reason, and never traps")
  func damaged() throws {
    for (number, (name, file)) in try Self.samples().enumerated() {
      var numbers = SeededNumbers(state: UInt64(number))
      for round in 0..<100 {
        let damaged = damage(file, &numbers)
        for decoder in Self.decoders {
          do throws(CacheError) {
            let image = try decoder.decode(damaged)
            #expect(image.size.area <= 300_000 && image.header.size.area <= 300_000, "\(name), \(round)")
            #expect(image.frameCount <= 20, "\(name), \(round)")
            #expect(image.pixels.byteCount == image.size.area * 4, "\(name), \(round)")
            guard image.frameCount > 1 else { continue }
            if let last = try? image.pixels(ofFrame: image.frameCount - 1) {
              #expect(last.byteCount == image.size.area * 4, "\(name), \(round)")
            }
          } catch {
            #expect([.decodingFailed, .imageLimitExceeded, .unsupported].contains(error.code), "\(name), \(round): \(error)")
            #expect(!error.reason.isEmpty && !error.reason.contains("took longer"), "\(name), \(round): \(error.reason)")
          }
        }
      }
    }
  }
}
#endif
