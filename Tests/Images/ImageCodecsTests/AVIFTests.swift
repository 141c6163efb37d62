#if canImport(ImageIO) || VIPS
import CacheCore
import ImageCodecs
import Testing

/// Without an AVIF encoder in the system's codec library, there is no AVIF to decode.
private let hasEncoder = (try? ImageEncoder(.avif).encode(TestImages.quarters())) != nil

@Suite("AVIF", .enabled(if: hasEncoder))
struct AVIFTests {
  @Test("an encoded AVIF is decoded in any size, with alpha")
  func roundTrip() throws {
    let file = try ImageEncoder(.avif, quality: 95).encode(TestImages.quarters())
    #expect(ImageFormat(of: file) == .avif)
    #expect(try ImageHeader(of: file).size == PixelSize(64, 48))
    for (size, pixels) in [(nil, PixelSize(64, 48)), (ImageSizing.fit(32, 32), PixelSize(32, 24))] {
      let image = try ImageDecoder(size: size).decode(file)
      #expect(image.size == pixels)
      #expect(areClose(TestImages.quarters(of: image.pixels), TestImages.colors))
    }
    let clear = try ImageDecoder().decode(ImageEncoder(.avif, quality: 95).encode(TestImages.quarters(alpha: 100)))
    #expect(areClose(TestImages.quarters(of: clear.pixels), TestImages.colors.map { RGBA($0.red, $0.green, $0.blue, 100) }))
  }

  @Test("a truncated AVIF is an error")
  func truncated() throws {
    let file = try ImageEncoder(.avif).encode(TestImages.quarters(256, 192))
    for length in stride(from: 0, to: file.count, by: 37) {
      #expect(throws: CacheError.self) { try ImageDecoder().decode(file.prefix(length)) }
    }
  }

  @Test("limits are checked against the header of an AVIF")
  func limits() throws {
    let file = try ImageEncoder(.avif).encode(TestImages.quarters())
    let error = #expect(throws: CacheError.self) { try ImageDecoder { $0.limits.pixels = 3000 }.decode(file) }
    #expect(error?.reason == "AVIF: the image has 64 × 48 = 3072 pixels, the limit is 3000")
  }
}
#endif
