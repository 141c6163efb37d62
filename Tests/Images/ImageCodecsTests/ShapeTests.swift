#if canImport(ImageIO) || VIPS
import CacheCore
import ImageCodecs
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("A different aspect ratio")
struct ShapeTests {
  @Test(
    "every format can be decoded to a different aspect ratio", arguments: TestImages.written([.jpeg, .png, .webp, .gif, .tiff]))
  func exact(format: ImageFormat) throws {
    let file = try ImageEncoder(format, quality: 95).encode(TestImages.quarters())
    for (width, height) in [(2000, 8), (8, 2000), (20_000, 8), (8, 8), (64, 8), (300, 300)] {
      let image = try ImageDecoder(size: .exact(width, height)).decode(file)
      #expect(image.size == PixelSize(width, height))
      #expect(areClose(TestImages.quarters(of: image.pixels), TestImages.colors, within: 16), "\(width) × \(height)")
    }
  }

  #if VIPS && os(Linux)
  @Test("drawing an SVG takes time proportional to the requested pixels")
  func drawing() throws {
    let file = Data(
      "<svg xmlns='http://www.w3.org/2000/svg' width='40' height='20'><rect width='20' height='20' fill='red'/></svg>".utf8)
    // Drawn as large as its larger side requires, the first one would take minutes and reach the time limit.
    for (width, height) in [(60_000, 2), (2, 60_000), (30_000, 40), (100, 100)] {
      let pixels = try ImageDecoder(size: .exact(width, height)).decode(file).pixels
      #expect(pixels.size == PixelSize(width, height))
      #expect(isClose(pixels[width / 4, height / 2], RGBA(255, 0, 0), within: 140), "\(width) × \(height)")
    }
  }
  #endif
}
#endif
