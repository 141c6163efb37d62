#if canImport(ImageIO) || VIPS
import CacheCore
import ImageCodecs
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Decoding")
struct DecodingTests {
  @Test("an encoded image is decoded", arguments: TestImages.written([.jpeg, .png, .webp, .gif, .tiff]))
  func roundTrip(format: ImageFormat) throws {
    // Given
    let file = try ImageEncoder(format, quality: 95).encode(TestImages.quarters())
    // When
    let image = try ImageDecoder().decode(file, url: URL(string: "https://example.com/picture"))
    // Then
    #expect(image.format == format)
    #expect(image.size == PixelSize(64, 48))
    #expect(image.frameCount == 1 && image.delays.isEmpty && !image.isPartial)
    #expect(areClose(TestImages.quarters(of: image.pixels), TestImages.colors))
    #expect(image.pixels.byteCount == 64 * 48 * 4)
    #expect(image.url?.absoluteString == "https://example.com/picture")
    #expect(image.original == nil)
  }

  @Test("alpha is straight and unchanged", arguments: TestImages.written([.png, .webp, .tiff]))
  func alpha(format: ImageFormat) throws {
    let file = try ImageEncoder(format, quality: 100).encode(TestImages.quarters(alpha: 100))
    let image = try ImageDecoder().decode(file)
    #expect(image.header.hasAlpha)
    #expect(image.cost == 64 * 48 * 4)
    let expected = TestImages.colors.map { RGBA($0.red, $0.green, $0.blue, 100) }
    #expect(areClose(TestImages.quarters(of: image.pixels), expected, within: 4))
  }

  @Test("all eight orientations give the same upright image in any size", arguments: 1...8)
  func orientations(number: Int) throws {
    // Given an image that is stored rotated, so that its EXIF orientation makes it upright
    let orientation = try #require(ImageOrientation(rawValue: number))
    let shown = PixelSize(64, 48)
    let stored = orientation.applied(to: shown)
    let pixels = try #require(
      PixelBuffer(size: stored, channels: .rgb) { bytes in
        for y in 0..<stored.height {
          for x in 0..<stored.width {
            let (right, bottom) = (stored.width - 1 - x, stored.height - 1 - y)
            let (u, v) =
              switch orientation {
              case .up: (x, y)
              case .upMirrored: (right, y)
              case .down: (right, bottom)
              case .downMirrored: (x, bottom)
              case .leftMirrored: (y, x)
              case .right: (bottom, x)
              case .rightMirrored: (bottom, right)
              case .left: (y, right)
              }
            let color = TestImages.quarter(u, v, shown)
            let start = (y * stored.width + x) * 3
            (bytes[start], bytes[start + 1], bytes[start + 2]) = (color.red, color.green, color.blue)
          }
        }
      })
    let file = TestImages.oriented(try ImageEncoder(.jpeg, quality: 95).encode(DecodedImage(pixels)), number)
    // When
    let header = try ImageHeader(of: file)
    let image = try ImageDecoder().decode(file)
    let small = try ImageDecoder(size: .fit(32, 32)).decode(file)
    // Then
    #expect(header.orientation == orientation)
    #expect(header.size == shown)
    #expect(image.size == shown)
    #expect(areClose(TestImages.quarters(of: image.pixels), TestImages.colors))
    #expect(small.size == PixelSize(32, 24))
    #expect(areClose(TestImages.quarters(of: small.pixels), TestImages.colors))
  }

  @Test("images are shrunk as requested, and the header contains the original size")
  func sizes() throws {
    let file = try ImageEncoder(.jpeg, quality: 95).encode(TestImages.quarters(640, 480))
    let image = try ImageDecoder(size: .fit(points: 20, 20, scale: 2), scale: 2).decode(file)
    #expect(image.size == PixelSize(40, 30))
    #expect(image.scale == 2 && image.pointWidth == 20 && image.pointHeight == 15)
    #expect(image.header.size == PixelSize(640, 480))
    #expect(areClose(TestImages.quarters(of: image.pixels), TestImages.colors))
    #expect(image.cost == 40 * 30 * 3)
    for (sizing, size) in [
      (ImageSizing.fill(40, 40), PixelSize(53, 40)), (.exact(17, 99), PixelSize(17, 99)), (.maxPixels(1000), PixelSize(36, 27)),
      (.fit(9999, 9999), PixelSize(640, 480)), (.fit(1280, 9999).enlarging, PixelSize(1280, 960)),
    ] {
      let image = try ImageDecoder(size: sizing).decode(file)
      #expect(image.size == size, "\(sizing)")
      #expect(areClose(TestImages.quarters(of: image.pixels), TestImages.colors), "\(sizing)")
    }
  }

  @Test("CMYK is converted to sRGB")
  func cmyk() throws {
    // Given a JPEG of 16 × 16 pixels with full magenta and yellow, without cyan and black, and without a profile
    let text = """
      /9j/7gAOQWRvYmUAZAAAAAAA/9sAQwADAgIDAgIDAwMDBAMDBAUIBQUEBAUKBwcGCAwKDAwLCgsLDQ4SEA0OEQ4LCxAWEBETFBUVFQwPFxgWFBgSFBUU\
      /8AAFAgAEAAQBEMRAE0RAFkRAEsRAP/EABUAAQEAAAAAAAAAAAAAAAAAAAAJ/8QAFBABAAAAAAAAAAAAAAAAAAAAAP/aAA4EQwBNAFkASwAAPwCqaVSV\
      SqYAAAD/2Q==
      """
    let file = try #require(Data(base64Encoded: text))
    #expect(try ImageHeader(of: file).colorSpace == "CMYK")
    for size in [nil, ImageSizing.fit(8, 8)] {
      let image = try ImageDecoder(size: size).decode(file)
      #expect(isClose(image.pixels[4, 4], RGBA(232, 31, 42), within: 30))
      #expect(image.cost == image.size.area * 3)
    }
  }

  @Test("the original bytes are kept on request, and count in the cost")
  func original() throws {
    let file = try ImageEncoder(.png).encode(TestImages.quarters())
    let image = try ImageDecoder { $0.retainsOriginal = true }.decode(file)
    #expect(image.original == file)
    #expect(image.cost == 64 * 48 * 3 + file.count)
  }

  @Test("the identity of a decoder includes all settings")
  func identity() {
    let changes: [(inout ImageDecoder) -> Void] = [
      { _ in }, { $0.size = .fit(1, 1) }, { $0.scale = 2 }, { $0.firstFrameOnly = true }, { $0.allowsPartial = true },
      { $0.retainsOriginal = true }, { $0.limits.bytes = 1 }, { $0.limits.pixels = 1 }, { $0.limits.side = 1 },
      { $0.limits.frames = 1 },
      { $0.limits.time = .seconds(1) },
    ]
    let ids = changes.map { ImageDecoder($0).id }
    #expect(Set(ids).count == changes.count)
    #expect(ImageDecoder().id == ImageDecoder().id)
    #expect(ResourceTransform.image(size: .fit(1, 1)).id != ResourceTransform.image().id)
  }

  @Test("limits are checked against the header")
  func limits() throws {
    let file = try ImageEncoder(.png).encode(TestImages.quarters())
    let cases: [((inout ImageLimits) -> Void, String)] = [
      ({ $0.bytes = 100 }, "PNG: the file has \(file.count) bytes, the limit is 100"),
      ({ $0.pixels = 3071 }, "PNG: the image has 64 × 48 = 3072 pixels, the limit is 3071"),
      ({ $0.side = 63 }, "PNG: the image has 64 × 48 pixels, the limit of a side is 63"),
    ]
    for (change, reason) in cases {
      let error = #expect(throws: CacheError.self) { try ImageDecoder { change(&$0.limits) }.decode(file) }
      #expect(error?.code == .imageLimitExceeded)
      #expect(error?.reason == reason)
      #expect(throws: CacheError.self) { try ImageHeader(of: file, limits: ImageLimits(change)) }
    }
    let enlarged = #expect(throws: CacheError.self) {
      try ImageDecoder {
        $0.size = .exact(1000, 1000)
        $0.limits.pixels = 10_000
      }.decode(file)
    }
    #expect(enlarged?.code == .imageLimitExceeded)
  }

  @Test("decoding stops after the time limit or when its task is cancelled")
  func time() async throws {
    let file = try ImageEncoder(.jpeg).encode(TestImages.quarters(2000, 1500))
    let late = #expect(throws: CacheError.self) { try ImageDecoder { $0.limits.time = .zero }.decode(file) }
    #expect(late?.code == .imageLimitExceeded)
    #expect(late?.reason == "JPEG: decoding took longer than the limit of 0.0 seconds")
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return #expect(throws: CacheError.self) { try ImageDecoder().decode(file) }?.isCancellation
    }
    #expect(await task.value == true)
  }
}
#endif
