#if canImport(ImageIO) || VIPS
import CacheCore
import HTTPTypes
import Testing

@testable import ImageCodecs

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

  @Test(
    "a format is written exactly if encoding succeeds",
    arguments: [.jpeg, .png, .webp, .avif, .gif, .tiff, .svg] as [ImageFormat])
  func written(format: ImageFormat) {
    let file = try? ImageEncoder(format).encode(TestImages.quarters())
    #expect(ImageEncoder.isWritten(format) == (file != nil))
  }

  @Test("a lower quality gives smaller files", arguments: TestImages.written([.jpeg, .webp]))
  func quality(format: ImageFormat) throws {
    let sizes = try [20, 60, 95].map { try ImageEncoder(format, quality: $0).encode(Self.noise).count }
    #expect(sizes == sizes.sorted() && Set(sizes).count == 3)
  }

  @Test("lossless encoding preserves every pixel", arguments: TestImages.written([.png, .webp, .tiff]))
  func lossless(format: ImageFormat) throws {
    var encoder = ImageEncoder(format)
    encoder.isLossless = true
    for image in [Self.noise, TestImages.quarters(alpha: 77)] {
      let decoded = try ImageDecoder().decode(encoder.encode(image)).pixels
      let distances = zip(decoded.bytes, image.pixels.bytes).map { abs(Int($0) - Int($1)) }
      #expect(decoded.size == image.size)
      #expect(decoded.bytes.count == image.pixels.bytes.count)
      #expect(try #require(distances.max()) <= (image.header.hasAlpha ? TestImages.losslessDistance : 0))
    }
  }

  @Test(
    "lossless WebP preserves visible pixels; PNG and TIFF also preserve the colors of transparent ones, but not with ImageIO",
    arguments: TestImages.written([.png, .webp, .tiff]))
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
        if y % 2 == 1 { #expect(isClose(decoded[x, y], image.pixels[x, y], within: TestImages.losslessDistance)) }
      }
    }
    if !TestImages.usesImageIO { #expect((decoded.bytes == image.pixels.bytes) == (format != .webp)) }
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

  @Test(
    "Core Graphics gets gray pixels for files that can have one channel",
    arguments: [
      (.gray, .jpeg, true, .absent, 1), (.gray, .png, true, .absent, 1), (.gray, .tiff, true, .absent, 1),
      (.grayAlpha, .png, true, .last, 2), (.gray, .heic, false, .skipped, 4), (.grayAlpha, .heic, false, .last, 4),
      (.gray, .gif, false, .skipped, 4), (.rgb, .png, false, .skipped, 4), (.rgba, .png, false, .last, 4),
    ] as [(PixelBuffer.Channels, ImageFormat, Bool, BitmapLayout.Alpha, Int)])
  func layout(channels: PixelBuffer.Channels, format: ImageFormat, isGray: Bool, alpha: BitmapLayout.Alpha, bytes: Int) {
    let layout = BitmapLayout(channels, encodedAs: format)
    #expect(layout.isGray == isGray)
    #expect(layout.alpha == alpha)
    #expect(layout.bytesPerPixel == bytes)
    #expect(!BitmapLayout(channels, keepsGray: false).isGray)
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

  @Test("an image is stored in a format that the engine writes, and the encoder itself refuses another one")
  func fallback() throws {
    let metadata = StoredMetadata(
      request: HTTPRequest(method: .get, scheme: "https", authority: "a", path: "/"), response: HTTPResponse(status: .ok),
      requestTime: Timestamp(seconds: 0), responseTime: Timestamp(seconds: 0),
      revision: .random(), freshness: Freshness(generatedAt: Timestamp(seconds: 0), freshUntil: .distantFuture))
    var lossless = ImageEncoder(.ico)
    lossless.isLossless = true
    for (encoder, image, format) in [
      (ImageEncoder(.ico), Self.noise, ImageFormat.jpeg), (ImageEncoder(.ico), TestImages.quarters(alpha: 7), .png),
      (lossless, Self.noise, .png), (.png, Self.noise, .png), (.automatic, Self.noise, .jpeg),
    ] {
      #expect(encoder.canEncode(image))
      #expect(ImageFormat(of: try encoder.encode(image, metadata)) == format)
    }
    let error = #expect(throws: CacheError.self) { try ImageEncoder(.ico).encode(Self.noise) }
    #expect(error?.code == .unsupported)
  }

  @Test("WebP is replaced where it cannot be written, as with ImageIO")
  func withoutWebP() {
    let isWritable: (ImageFormat) -> Bool = { $0 != .webp }
    #expect(ImageEncoder.webp.storing(Self.noise, isWritable).format == .jpeg)
    #expect(ImageEncoder.webp.storing(TestImages.quarters(alpha: 7), isWritable).format == .png)
    #expect(ImageEncoder.webp.storing(Self.noise) { _ in true }.format == .webp)
    #expect(ImageEncoder(.heic, quality: 70).storing(Self.noise, isWritable) == ImageEncoder(.heic, quality: 70))
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
