#if VIPS && os(Linux)
import CacheCore
import Foundation
import Testing

@testable import ImageCodecs

@Suite("Fast shrinking of JPEGs")
struct FastShrinkTests {
  /// Rings that become finer from the center on, between smooth areas and hard edges.
  private static let drawing: PixelBuffer? = {
    let size = PixelSize(1_600, 1_200)
    return PixelBuffer(size: size, channels: .rgb) { bytes in
      for y in 0..<size.height {
        for x in 0..<size.width {
          let (across, down) = (Double(x - 800), Double(y - 600))
          let ring = cos((across * across + down * down) / 16_000)
          let edge = (x / 160 + y / 150) % 2 == 0 ? 40.0 : -40.0
          let value = UInt8(min(max(128 + 50 * ring + edge, 0), 255))
          for channel in 0..<3 { bytes[(y * size.width + x) * 3 + channel] = value }
        }
      }
    }
  }()

  private func jpeg() throws -> Data {
    try ImageEncoder(.jpeg, quality: 95).encode(DecodedImage(try #require(Self.drawing)))
  }

  private func pixels(_ file: Data, _ size: ImageSizing, fast: Bool) throws -> PixelBuffer {
    try ImageDecoder {
      $0.size = size
      $0.fastShrinkOnLoad = fast
    }.decode(file).pixels
  }

  /// The ratio of the greatest to the mean squared difference, in dB.
  private func peakRatio(_ first: PixelBuffer, _ second: PixelBuffer) -> Double {
    let (first, second) = (first.bytes, second.bytes)
    let sum = zip(first, second).reduce(0.0) { $0 + (Double($1.0) - Double($1.1)) * (Double($1.0) - Double($1.1)) }
    return 10 * log10(255 * 255 / max(sum / Double(first.count), 1e-9))
  }

  @Test(
    "an image that was shrunk fast is close to one that was resized in full size",
    arguments: [(160, 38.0), (128, 38), (267, 38), (320, 38)])
  func closeness(width: Int, least: Double) throws {
    let file = try jpeg()
    let sizing = ImageSizing.fit(width, width)
    let fast = try pixels(file, sizing, fast: true)
    // A PNG is decoded in full size.
    let full = try pixels(ImageEncoder.png.encode(ImageDecoder().decode(file)), sizing, fast: true)
    let ratio = peakRatio(fast, full)
    #expect(fast.size == full.size && ratio >= least, "\(width): \(ratio) dB")
    // The codec shrinks more than without the setting.
    #expect(try pixels(file, sizing, fast: false).bytes != fast.bytes)
  }

  @Test("an image that is not shrunk, and one of another format, do not depend on the setting")
  func unchanged() throws {
    let file = try jpeg()
    #expect(try pixels(file, .width(1_600), fast: true).bytes == pixels(file, .width(1_600), fast: false).bytes)
    // Less than a factor of 2.5 is left.
    #expect(try pixels(file, .width(700), fast: true).bytes == pixels(file, .width(700), fast: false).bytes)
    let webp = try ImageEncoder.webp.encode(DecodedImage(try #require(Self.drawing)))
    #expect(try pixels(webp, .width(160), fast: true).bytes == pixels(webp, .width(160), fast: false).bytes)
  }

  @Test("a gray image of few pixels is sharpened within its bounds", arguments: [1, 2, 3, 100])
  func small(width: Int) throws {
    let gray = try ImageProcessor.gray.process(DecodedImage(try #require(Self.drawing)))
    let file = try ImageEncoder(.jpeg, quality: 95).encode(gray)
    let fast = try pixels(file, .exact(width, 1), fast: true)
    #expect(fast.size == PixelSize(width, 1))
    #expect((0..<width).allSatisfy { fast[$0, 0].red == fast[$0, 0].green && fast[$0, 0].red == fast[$0, 0].blue })
  }

  @Test("a color stays as it is, also at the border")
  func flat() throws {
    let file = try ImageEncoder(.jpeg, quality: 95).encode(TestImages.quarters(1_600, 1_200))
    let image = try ImageDecoder {
      $0.size = .fit(160, 120)
      $0.fastShrinkOnLoad = true
    }.decode(file)
    #expect(areClose(TestImages.quarters(of: image.pixels), TestImages.colors, within: 3))
    #expect(areClose([image.pixels[0, 0], image.pixels[159, 119]], [TestImages.colors[0], TestImages.colors[3]], within: 3))
  }

  @Test("the setting is a part of the cache key")
  func key() {
    let fast = ImageDecoder { $0.fastShrinkOnLoad = true }
    #expect(fast.id != ImageDecoder().id)
  }
}
#endif
