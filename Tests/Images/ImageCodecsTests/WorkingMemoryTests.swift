#if VIPS && os(Linux)
import CacheCore
import Testing

@testable import ImageCodecs

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Without an AVIF encoder in the system's codec library, there is no AVIF to decode.
private let hasEncoder = (try? ImageEncoder(.avif).encode(TestImages.quarters())) != nil

@Suite("Working memory of decoding")
struct WorkingMemoryTests {
  /// An image of 64 × 48 pixels, decoded to an eighth of each side.
  private let area = 64 * 48
  private let wanted = 8 * 6

  private func memory(_ data: Data) -> Int {
    ImageDecoder(size: .fit(8, 8)).workingMemory(for: data, .whole(of: data))
  }

  @Test("a sequential JPEG needs memory for the target size, a progressive one also for all coefficients")
  func progressive() throws {
    var encoder = ImageEncoder(.jpeg, quality: 80)
    #expect(memory(try encoder.encode(TestImages.quarters())) == wanted * 2 * 3)
    encoder.isProgressive = true
    // Two bytes per coefficient, with chroma at half the size in both directions.
    #expect(memory(try encoder.encode(TestImages.quarters())) == wanted * 2 * 3 + area * 3 / 2 * 2)
    #expect(memory(try encoder.encode(ImageProcessor.gray.process(TestImages.quarters()))) == wanted * 2 + area * 2)
  }

  @Test("the coefficients of a JPEG are counted by sampling factors, in whole blocks")
  func sampling() {
    /// Returns a file of 17 × 9 pixels with three components and a scan header.
    func file(_ marker: UInt8, sampling: UInt8, scan: UInt8) -> [UInt8] {
      let frame: [UInt8] = [8, 0, 9, 0, 17, 3, 1, sampling, 0, 2, 0x11, 0, 3, 0x11, 0]
      let table: [UInt8] = [0xFF, 0xC4, 0, 4, 0, 0]
      return [0xFF, 0xD8] + table + [0xFF, marker, 0, UInt8(frame.count + 2)] + frame
        + [0xFF, 0xDA, 0, 6 + scan * 2, scan] + [UInt8](repeating: 0, count: Int(scan) * 2 + 3)
    }
    for (sampling, blocks) in [(UInt8(0x22), 2 * 6), (0x21, 2 * 2 * 4), (0x11, 3 * 2 * 3)] {
      #expect(JPEGCoefficients.byteCount(Data(file(0xC2, sampling: sampling, scan: 3))) == blocks * 128)
      #expect(JPEGCoefficients.byteCount(Data(file(0xCA, sampling: sampling, scan: 3))) == blocks * 128)
      // A baseline image with separate scans per component is stored in the same way.
      #expect(JPEGCoefficients.byteCount(Data(file(0xC0, sampling: sampling, scan: 1))) == blocks * 128)
      #expect(JPEGCoefficients.byteCount(Data(file(0xC0, sampling: sampling, scan: 3))) == 0)
    }
    let whole = Data(file(0xC2, sampling: 0x22, scan: 3))
    for length in 0..<whole.count { #expect(JPEGCoefficients.byteCount(whole.prefix(length)) <= 2 * 6 * 128) }
  }

  @Test("a WebP needs memory for all pixels of its lossless parts: colors or alpha")
  func webP() throws {
    var encoder = ImageEncoder(.webp)
    #expect(memory(try encoder.encode(TestImages.quarters())) == wanted * 2 * 3)
    // Alpha is decoded as a lossless image and becomes a plane.
    #expect(memory(try encoder.encode(TestImages.quarters(alpha: 77))) == wanted * 2 * 4 + area * 5)
    encoder.isLossless = true
    #expect(memory(try encoder.encode(TestImages.quarters())) == wanted * 2 * 3 + area * 4)
    #expect(memory(try encoder.encode(TestImages.quarters(alpha: 77))) == wanted * 2 * 4 + area * 4)
  }

  @Test("an AVIF needs memory for its planes twice", .enabled(if: hasEncoder))
  func avif() throws {
    #expect(memory(try ImageEncoder(.avif).encode(TestImages.quarters())) == (area + wanted) * 3 + area * 3)
  }

  @Test("an SVG needs memory for its elements, for all embedded images, and once more for the largest")
  func drawing() throws {
    func drawing(_ pictures: [Data]) -> Data {
      let images = pictures.map { "<image width='80' height='60' href='data:image/png;base64,\($0.base64EncodedString())'/>" }
      return Data("<svg xmlns='http://www.w3.org/2000/svg' width='80' height='80'>\(images.joined())</svg>".utf8)
    }
    let (large, small) = (
      try ImageEncoder.png.encode(TestImages.quarters()), try ImageEncoder.png.encode(TestImages.quarters(32, 24))
    )
    /// The pixels, the elements and the markup.
    func drawn(_ pictures: [Data]) -> Int {
      8 * 8 * 4 * 2 + 2_048 * (1 + pictures.count) + drawing(pictures).count * 4
    }
    #expect(memory(drawing([])) == drawn([]))
    #expect(memory(drawing([large])) == drawn([large]) + area * 8)
    #expect(memory(drawing([small, large])) == drawn([small, large]) + (area + area / 4 + area) * 4)
  }
}
#endif
