#if canImport(ImageIO) || VIPS
import CacheCore
import ImageCodecs
import Testing

/// Where the system's codec library has no encoder of AVIF, there is no AVIF to decode either.
private let hasEncoder = (try? ImageEncoder(.avif).encode(Pictures.quarters())) != nil

@Suite("AVIF", .enabled(if: hasEncoder))
struct AVIFTests {
  @Test("gives back what was encoded, in any size, with its alpha")
  func roundTrip() throws {
    let file = try ImageEncoder(.avif, quality: 95).encode(Pictures.quarters())
    #expect(ImageFormat(of: file) == .avif)
    #expect(try ImageHeader(of: file).size == PixelSize(64, 48))
    for (size, pixels) in [(nil, PixelSize(64, 48)), (ImageSizing.fit(32, 32), PixelSize(32, 24))] {
      let image = try ImageDecoder(size: size).decode(file)
      #expect(image.size == pixels)
      #expect(areClose(Pictures.quarters(of: image.pixels), Pictures.colors))
    }
    let clear = try ImageDecoder().decode(ImageEncoder(.avif, quality: 95).encode(Pictures.quarters(alpha: 100)))
    #expect(areClose(Pictures.quarters(of: clear.pixels), Pictures.colors.map { RGBA($0.red, $0.green, $0.blue, 100) }))
  }

  @Test("that is cut short is an error")
  func truncated() throws {
    let file = try ImageEncoder(.avif).encode(Pictures.quarters(256, 192))
    for length in stride(from: 0, to: file.count, by: 37) {
      #expect(throws: CacheError.self) { try ImageDecoder().decode(file.prefix(length)) }
    }
  }

  @Test("has its limits held against its own header")
  func limits() throws {
    let file = try ImageEncoder(.avif).encode(Pictures.quarters())
    let error = #expect(throws: CacheError.self) { try ImageDecoder { $0.limits.pixels = 3000 }.decode(file) }
    #expect(error?.reason == "AVIF: the picture has 64 × 48 = 3072 pixels, the limit is 3000")
  }
}
#endif
