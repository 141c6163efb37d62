#if canImport(ImageIO) || VIPS
import CacheCore
import ImageCodecs
import ImageFiles
import Testing

@Suite("PNG")
struct PNGTests {
  @Test("every color type and depth becomes 8-bit sRGB")
  func colorTypes() throws {
    let palette: [(String, [UInt8])] = [("PLTE", [255, 0, 0, 0, 255, 0])]
    let cases: [(PNGFile, [RGBA], Int)] = [
      (PNGFile(width: 2, height: 1, colorType: 0, rows: [[0, 200]]), [RGBA(0, 0, 0), RGBA(200, 200, 200)], 1),
      (PNGFile(width: 2, height: 1, depth: 1, colorType: 0, rows: [[0b0100_0000]]), [RGBA(0, 0, 0), RGBA(255, 255, 255)], 1),
      (
        PNGFile(width: 2, height: 1, depth: 16, colorType: 0, rows: [[0, 0, 0xFF, 0xFF]]), [RGBA(0, 0, 0), RGBA(255, 255, 255)], 1
      ),
      (PNGFile(width: 2, height: 1, colorType: 2, rows: [[1, 2, 3, 4, 5, 6]]), [RGBA(1, 2, 3), RGBA(4, 5, 6)], 3),
      (
        PNGFile(width: 2, height: 1, depth: 16, colorType: 2, rows: [[255, 255, 0, 0, 0, 0, 0x80, 0x80, 0, 0, 255, 255]]),
        [RGBA(255, 0, 0), RGBA(128, 0, 255)], 3
      ),
      (PNGFile(width: 2, height: 1, colorType: 3, rows: [[1, 0]], chunks: palette), [RGBA(0, 255, 0), RGBA(255, 0, 0)], 3),
      (
        PNGFile(width: 2, height: 1, colorType: 3, rows: [[1, 0]], chunks: palette + [("tRNS", [77])]),
        [RGBA(0, 255, 0), RGBA(255, 0, 0, 77)], 4
      ),
      (PNGFile(width: 2, height: 1, colorType: 4, rows: [[9, 10, 200, 0]]), [RGBA(9, 9, 9, 10), RGBA(200, 200, 200, 0)], 2),
      (PNGFile(width: 2, height: 1, colorType: 6, rows: [[1, 2, 3, 4, 5, 6, 7, 0]]), [RGBA(1, 2, 3, 4), RGBA(5, 6, 7, 0)], 4),
      (
        PNGFile(width: 1, height: 1, depth: 16, colorType: 6, rows: [[255, 255, 0, 0, 0, 0, 0x80, 0x80]]), [RGBA(255, 0, 0, 128)],
        4
      ),
    ]
    for (file, colors, channels) in cases {
      let image = try ImageDecoder().decode(file.data)
      let pixels = (0..<image.size.width).map { image.pixels[$0, 0] }
      #expect(areLossless(pixels, colors), "type \(file.colorType), \(file.depth) bits: \(pixels)")
      #expect(image.cost == image.size.area * channels, "type \(file.colorType), \(file.depth) bits")
      #expect(image.header.bitDepth == (file.depth == 16 ? 16 : 8))
    }
  }

  @Test("an interlaced PNG is decoded like any other")
  func interlaced() throws {
    var encoder = ImageEncoder(.png)
    encoder.isProgressive = true
    let image = try ImageDecoder(size: .fit(32, 32)).decode(encoder.encode(TestImages.quarters()))
    #expect(areClose(TestImages.quarters(of: image.pixels), TestImages.colors))
  }
}
#endif
