#if canImport(ImageIO) || VIPS
import CacheCore
import ImageCodecs
import Testing

@Suite("Encoding")
struct ImageEncoderTests {
  /// An image that compresses badly, so that every setting has a visible effect.
  private static let noise: DecodedImage = {
    var state: UInt64 = 7
    let pixels = PixelBuffer(size: PixelSize(96, 64), channels: .rgb) { bytes in
      for index in bytes.indices {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        bytes[index] = UInt8(truncatingIfNeeded: state >> 56) / 4 + UInt8(index % 96)
      }
    }
    return DecodedImage(pixels ?? TestImages.quarters().pixels)
  }()

  @Test("a lower quality gives smaller files", arguments: [ImageFormat.jpeg, .webp])
  func quality(format: ImageFormat) throws {
    let sizes = try [20, 60, 95].map { try ImageEncoder(format, quality: $0).encode(Self.noise).count }
    #expect(sizes == sizes.sorted() && Set(sizes).count == 3)
  }

  @Test("lossless encoding preserves every pixel", arguments: [ImageFormat.png, .webp, .tiff])
  func lossless(format: ImageFormat) throws {
    var encoder = ImageEncoder(format)
    encoder.isLossless = true
    for image in [Self.noise, TestImages.quarters(alpha: 77)] {
      #expect(try ImageDecoder().decode(encoder.encode(image)).pixels.bytes == image.pixels.bytes)
    }
  }

  @Test(
    "lossless WebP preserves visible pixels; PNG and TIFF also preserve the colors of transparent ones",
    arguments: [ImageFormat.png, .webp, .tiff])
  func hiddenColors(format: ImageFormat) throws {
    // Given an image in which every second row is transparent
    let pixels = PixelBuffer(size: PixelSize(32, 32)) { bytes in
      for index in bytes.indices {
        bytes[index] = index % 4 == 3 ? UInt8(index / 128 % 2) * 200 : UInt8(truncatingIfNeeded: index &* 7 / 3)
      }
    }
    let image = DecodedImage(try #require(pixels))
    var encoder = ImageEncoder(format)
    encoder.isLossless = true
    let decoded = try ImageDecoder().decode(encoder.encode(image)).pixels
    // Then
    for y in 0..<32 {
      for x in 0..<32 {
        #expect(decoded[x, y].alpha == image.pixels[x, y].alpha)
        if y % 2 == 1 { #expect(decoded[x, y] == image.pixels[x, y]) }
      }
    }
    #expect((decoded.bytes == image.pixels.bytes) == (format != .webp))
  }

  @Test("a format without alpha shows the background")
  func background() throws {
    var encoder = ImageEncoder(.jpeg, quality: 95)
    let clear = TestImages.quarters(alpha: 0)
    #expect(isClose(try ImageDecoder().decode(encoder.encode(clear)).pixels[5, 5], RGBA(255, 255, 255), within: 2))
    encoder.background = RGBA(10, 200, 30)
    #expect(isClose(try ImageDecoder().decode(encoder.encode(clear)).pixels[5, 5], RGBA(10, 200, 30), within: 3))
  }

  @Test("a format without alpha shows the background's color behind a gray image")
  func grayBackground() throws {
    var encoder = ImageEncoder(.jpeg, quality: 95)
    encoder.background = RGBA(10, 200, 30)
    for (alpha, shown) in [(UInt8(0), RGBA(10, 200, 30)), (128, RGBA(55, 150, 65)), (255, RGBA(100, 100, 100))] {
      let gray = PixelBuffer(size: PixelSize(16, 16), channels: .grayAlpha) { bytes in
        for index in bytes.indices { bytes[index] = index % 2 == 0 ? 100 : alpha }
      }
      let file = try encoder.encode(DecodedImage(try #require(gray)))
      #expect(isClose(try ImageDecoder().decode(file).pixels[5, 5], shown, within: 3), "\(alpha)")
    }
  }

  @Test("gray images are encoded as gray")
  func gray() throws {
    for format in [ImageFormat.jpeg, .png] {
      let file = try ImageEncoder(format, quality: 95).encode(ImageProcessor.gray.process(TestImages.quarters()))
      #expect(try ImageDecoder().decode(file).cost == 64 * 48, "\(format)")
    }
  }

  @Test("a progressive JPEG is made on request")
  func progressive() throws {
    var encoder = ImageEncoder(.jpeg)
    encoder.isProgressive = true
    let (file, plain) = (try encoder.encode(Self.noise), try ImageEncoder(.jpeg).encode(Self.noise))
    // The frame marker: C2 is progressive, C0 baseline (ISO/IEC 10918-1 table B.1).
    #expect(Self.frameMarker(Array(file)) == 0xC2)
    #expect(Self.frameMarker(Array(plain)) == 0xC0)
  }

  private static func frameMarker(_ bytes: [UInt8]) -> UInt8? {
    var next = 2
    while next + 4 < bytes.count, bytes[next] == 0xFF {
      if (0xC0...0xC2).contains(bytes[next + 1]) { return bytes[next + 1] }
      next += 2 + Int(bytes[next + 2]) << 8 + Int(bytes[next + 3])
    }
    return nil
  }

  private func effort(_ effort: Int) -> ImageEncoder {
    var encoder = ImageEncoder(.webp)
    encoder.effort = effort
    return encoder
  }

  private func timeLimit(_ limit: Duration) -> ImageEncoder {
    var encoder = ImageEncoder(.webp)
    encoder.timeLimit = limit
    return encoder
  }

  @Test("invalid settings and formats that the engine cannot write are refused")
  func refusals() {
    for (encoder, code) in [
      (ImageEncoder(.jpeg, quality: 0), CacheError.Code.invalidConfiguration),
      (ImageEncoder(.jpeg, quality: 101), .invalidConfiguration), (effort(10), .invalidConfiguration),
      (timeLimit(.seconds(-1)), .invalidConfiguration),
      (ImageEncoder(.svg), .unsupported), (ImageEncoder(.ico), .unsupported),
    ] {
      let error = #expect(throws: CacheError.self) { try encoder.encode(TestImages.quarters()) }
      #expect(error?.code == code)
    }
    var late = ImageEncoder(.webp)
    late.timeLimit = .zero
    let error = #expect(throws: CacheError.self) { try late.encode(TestImages.quarters(800, 600)) }
    #expect(error?.code == .imageLimitExceeded)
  }
}
#endif
