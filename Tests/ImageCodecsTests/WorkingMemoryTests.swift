#if VIPS
import CacheCore
import Testing

@testable import ImageCodecs

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Where the system's codec library has no encoder of AVIF, there is no AVIF to decode either.
private let hasEncoder = (try? ImageEncoder(.avif).encode(Pictures.quarters())) != nil

@Suite("The memory that decoding takes")
struct WorkingMemoryTests {
  /// Of 64 × 48 pixels, an eighth of which in each direction are asked for.
  private let area = 64 * 48
  private let wanted = 8 * 6

  private func memory(_ data: Data) -> Int {
    ImageDecoder(size: .fit(8, 8)).workingMemory(for: data, .whole(of: data))
  }

  @Test("of a JPEG that comes row by row is that of the smaller size; of a progressive one there are all coefficients too")
  func progressive() throws {
    var encoder = ImageEncoder(.jpeg, quality: 80)
    #expect(memory(try encoder.encode(Pictures.quarters())) == wanted * 2 * 3)
    encoder.isProgressive = true
    // Two bytes each, the colours' at half the size in both directions.
    #expect(memory(try encoder.encode(Pictures.quarters())) == wanted * 2 * 3 + area * 3 / 2 * 2)
    #expect(memory(try encoder.encode(ImageProcessor.gray.process(Pictures.quarters()))) == wanted * 2 + area * 2)
  }

  @Test("of a JPEG is by its components' sampling, in whole blocks")
  func sampling() {
    /// 17 × 9 pixels, three components, and a scan's header.
    func file(_ marker: UInt8, sampling: UInt8, scan: UInt8) -> [UInt8] {
      let frame: [UInt8] = [8, 0, 9, 0, 17, 3, 1, sampling, 0, 2, 0x11, 0, 3, 0x11, 0]
      let table: [UInt8] = [0xFF, 0xC4, 0, 4, 0, 0]
      return [0xFF, 0xD8] + table + [0xFF, marker, 0, UInt8(frame.count + 2)] + frame
        + [0xFF, 0xDA, 0, 6 + scan * 2, scan] + [UInt8](repeating: 0, count: Int(scan) * 2 + 3)
    }
    for (sampling, blocks) in [(UInt8(0x22), 2 * 6), (0x21, 2 * 2 * 4), (0x11, 3 * 2 * 3)] {
      #expect(JPEGCoefficients.byteCount(Data(file(0xC2, sampling: sampling, scan: 3))) == blocks * 128)
      #expect(JPEGCoefficients.byteCount(Data(file(0xCA, sampling: sampling, scan: 3))) == blocks * 128)
      // A baseline picture whose components follow each other is kept in the same way.
      #expect(JPEGCoefficients.byteCount(Data(file(0xC0, sampling: sampling, scan: 1))) == blocks * 128)
      #expect(JPEGCoefficients.byteCount(Data(file(0xC0, sampling: sampling, scan: 3))) == 0)
    }
    let whole = Data(file(0xC2, sampling: 0x22, scan: 3))
    for length in 0..<whole.count { #expect(JPEGCoefficients.byteCount(whole.prefix(length)) <= 2 * 6 * 128) }
  }

  @Test("of a WebP has all pixels of what is without loss: of the colours, or of alpha")
  func webP() throws {
    var encoder = ImageEncoder(.webp)
    #expect(memory(try encoder.encode(Pictures.quarters())) == wanted * 2 * 3)
    // Alpha is made as a picture without loss, and is a plane then.
    #expect(memory(try encoder.encode(Pictures.quarters(alpha: 77))) == wanted * 2 * 4 + area * 5)
    encoder.isLossless = true
    #expect(memory(try encoder.encode(Pictures.quarters())) == wanted * 2 * 3 + area * 4)
    #expect(memory(try encoder.encode(Pictures.quarters(alpha: 77))) == wanted * 2 * 4 + area * 4)
  }

  @Test("of an AVIF has its planes twice", .enabled(if: hasEncoder))
  func avif() throws {
    #expect(memory(try ImageEncoder(.avif).encode(Pictures.quarters())) == (area + wanted) * 3 + area * 3)
  }

  @Test("of a drawing has the pictures that it carries, all of them and the largest once more")
  func drawing() throws {
    func drawing(_ pictures: [Data]) -> Data {
      let images = pictures.map { "<image width='80' height='60' href='data:image/png;base64,\($0.base64EncodedString())'/>" }
      return Data("<svg xmlns='http://www.w3.org/2000/svg' width='80' height='80'>\(images.joined())</svg>".utf8)
    }
    let (large, small) = (
      try ImageEncoder.png.encode(Pictures.quarters()), try ImageEncoder.png.encode(Pictures.quarters(32, 24))
    )
    let drawn = 8 * 8 * 2 * 4
    #expect(memory(drawing([])) == drawn)
    #expect(memory(drawing([large])) == drawn + area * 8)
    #expect(memory(drawing([small, large])) == drawn + (area + area / 4 + area) * 4)
  }
}
#endif
