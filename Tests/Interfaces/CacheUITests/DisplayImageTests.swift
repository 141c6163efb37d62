#if canImport(ImageIO) || VIPS
import CacheTesting
import Foundation
import HTTPTypes
import Testing

@testable import CacheUI
@testable import ImageCodecs

@Suite("Display images")
struct DisplayImageTests {
  private func pixels(_ channels: PixelBuffer.Channels, _ bytes: [UInt8], width: Int = 1) throws -> PixelBuffer {
    let size = PixelSize(width, bytes.count / channels.rawValue / width)
    return try #require(PixelBuffer(size: size, channels: channels) { $0.copyBytes(from: bytes) })
  }

  @Test("a display image has premultiplied pixels: blue, green, red and alpha")
  func premultiplied() throws {
    let image = try DisplayImage(DecodedImage(try pixels(.rgba, [200, 100, 50, 128, 10, 20, 30, 0, 1, 2, 3, 255], width: 3)))
    let bytes = image.withUnsafeBytes { Array($0[..<12]) }
    #expect(bytes == [25, 50, 100, 128, 0, 0, 0, 0, 3, 2, 1, 255])
    #expect(!image.isOpaque)
  }

  @Test("a template is another image than the one whose pixels it shares")
  func sharedPixels() throws {
    let image = try DisplayImage(DecodedImage(try pixels(.rgb, [1, 2, 3])))
    #expect(image.isSame(as: image) && image.asTemplate().isSame(as: image.asTemplate()))
    #expect(!image.isSame(as: image.asTemplate()) && !image.asTemplate().isSame(as: image) && !image.isSame(as: nil))
  }

  @Test("premultiplied colors are rounded to the nearest integer")
  func rounding() throws {
    for alpha in UInt8.min...255 {
      let colors = [UInt8](0...255)
      let source = colors.flatMap { [$0, $0, $0, alpha] }
      let image = try DisplayImage(DecodedImage(try pixels(.rgba, source, width: 256)))
      image.withUnsafeBytes { bytes in
        for color in colors {
          let exact = (Double(color) * Double(alpha) / 255).rounded()
          #expect(bytes[Int(color) * 4] == UInt8(exact))
        }
      }
    }
  }

  @Test("an image without alpha is opaque, and gray has equal colors")
  func channels() throws {
    let rgb = try DisplayImage(DecodedImage(try pixels(.rgb, [1, 2, 3])))
    let gray = try DisplayImage(DecodedImage(try pixels(.gray, [7])))
    let translucent = try DisplayImage(DecodedImage(try pixels(.grayAlpha, [255, 51])))
    #expect(rgb.withUnsafeBytes { Array($0[..<4]) } == [3, 2, 1, 255] && rgb.isOpaque)
    #expect(gray.withUnsafeBytes { Array($0[..<4]) } == [7, 7, 7, 255] && gray.isOpaque)
    #expect(translucent.withUnsafeBytes { Array($0[..<4]) } == [51, 51, 51, 51] && !translucent.isOpaque)
  }

  @Test("rows start at multiples of 64 bytes", arguments: [1, 15, 16, 17, 100])
  func rows(width: Int) throws {
    let source = (0..<3).flatMap { row in [UInt8](repeating: UInt8(row + 1), count: width * 3) }
    let image = try DisplayImage(DecodedImage(try pixels(.rgb, source, width: width), scale: 2))
    #expect(image.bytesPerRow % 64 == 0 && image.bytesPerRow >= width * 4 && image.bytesPerRow < width * 4 + 64)
    #expect(image.cost == image.bytesPerRow * 3)
    #expect(image.size == PixelSize(width, 3) && image.pointWidth == Double(width) / 2)
    image.withUnsafeBytes { bytes in
      #expect(bytes.count == image.bytesPerRow * 3)
      for row in 0..<3 { #expect(bytes[row * image.bytesPerRow + (width - 1) * 4] == UInt8(row + 1)) }
    }
  }

  @Test("the frames of an animated image are decoded, and a still image has one")
  func frames() async throws {
    let animated = try DisplayImage(ImageDecoder().decode(ImageFile.animated(loops: 0)))
    #expect(animated.frameCount == 3 && animated.delays == [.milliseconds(100), .milliseconds(200), .milliseconds(300)])
    #expect(ImageFixture.color(of: try await animated.frame(2)) == "blue")
    let still = try DisplayImage(ImageDecoder().decode(ImageFile.red))
    #expect(still.frameCount == 1 && still.delays.isEmpty && still.loopCount == nil)
    #expect(try await still.frame(0).isSame(as: still))
    await #expect(throws: CacheError.self) { try await still.frame(1) }
  }

  @Test("a display image is cached in memory and made once for two concurrent loads")
  func cached() async throws {
    let fixture = try await ImageFixture()
    fixture.network.respond(to: fixture.url, with: .image(ImageFile.red))
    async let first = fixture.manager.load(fixture.url, as: .displayImage(.resize(.fit(2, 2)), scale: 2))
    async let second = fixture.manager.load(fixture.url, as: .displayImage(.resize(.fit(2, 2)), scale: 2))
    let (one, two) = try await (first.value, second.value)
    #expect(one.isSame(as: two) && one.size == PixelSize(2, 2) && one.scale == 2)
    let again = try await fixture.manager.load(fixture.url, as: .displayImage(.resize(.fit(2, 2)), scale: 2))
    #expect(again.source == .memory && again.value.isSame(as: one))
  }

  private let metadata = StoredMetadata(
    request: HTTPRequest(method: .get, scheme: "https", authority: "a", path: "/"), response: HTTPResponse(status: .ok),
    requestTime: Timestamp(seconds: 0), responseTime: Timestamp(seconds: 0),
    revision: .random(), freshness: Freshness(generatedAt: Timestamp(seconds: 0), freshUntil: .distantFuture))

  /// An engine that decodes for the screen: each byte of the rows is 7.
  private struct ScreenEngine: ImageEngine {
    let engine: any ImageEngine

    var drawingBytesPerPixel: Int { 8 }

    func screenRows(
      of data: Data, _ header: ImageHeader, size: PixelSize, watch: DecodingDeadline
    ) throws(CacheError) -> ScreenRows? {
      ScreenRows(size: size, isOpaque: true) { $0.initializeMemory(as: UInt8.self, repeating: 7) }
    }

    func header(of data: Data, _ format: ImageFormat) throws(CacheError) -> ImageHeader { try engine.header(of: data, format) }

    func pixels(
      of data: Data, _ header: ImageHeader, size: PixelSize, partial: Bool, fast: Bool, watch: DecodingDeadline
    ) throws(CacheError) -> PixelBuffer {
      try engine.pixels(of: data, header, size: size, partial: partial, fast: fast, watch: watch)
    }

    func frames(
      of data: Data, _ header: ImageHeader, size: PixelSize, partial: Bool, limits: ImageLimits
    ) throws(CacheError) -> any FrameSource {
      try engine.frames(of: data, header, size: size, partial: partial, limits: limits)
    }

    func canEncode(_ format: ImageFormat) -> Bool { engine.canEncode(format) }

    func encode(_ pixels: PixelBuffer, _ settings: ImageEncoder, _ watch: DecodingDeadline) throws(CacheError) -> Data {
      try engine.encode(pixels, settings, watch)
    }

    func resize(_ pixels: PixelBuffer, to size: PixelSize, _ watch: DecodingDeadline) throws(CacheError) -> PixelBuffer {
      try engine.resize(pixels, to: size, watch)
    }

    func attention(in pixels: PixelBuffer, size: PixelSize) throws(CacheError) -> PixelRect {
      try engine.attention(in: pixels, size: size)
    }
  }

  @Test("a still image without own steps is decoded for the screen without straight pixels in between")
  func screenRows() throws {
    let file = ImageFile.png(RGBA(255, 0, 0), width: 40, height: 30)
    let decode = { (data: Data, processor: ImageProcessor) throws -> DisplayImage in
      try DisplayImageDecoder(processor, decoder: ImageDecoder(scale: 2)).decode(data, metadata)
    }
    try ImageInspector.$replacement.withValue(ScreenEngine(engine: ImageInspector.engine())) {
      let image = try decode(file, .resize(.fit(20, 20)))
      #expect(image.size == PixelSize(20, 15) && image.scale == 2 && image.isOpaque && image.bytesPerRow == 128)
      #expect(image.withUnsafeBytes { $0.allSatisfy { $0 == 7 } } && image.cost == 128 * 15)
      // With a step, and for an animated image.
      #expect(ImageFixture.color(of: try decode(file, .flipVertically)) == "red")
      let animated = try decode(ImageFile.animated(loops: 0), .none)
      #expect(animated.frameCount == 3 && ImageFixture.color(of: animated) == "red")
      // The limits are checked first.
      #expect(throws: CacheError.self) { try decode(file.prefix(20), .none) }
    }
    #expect(ImageFixture.color(of: try decode(file, .none)) == "red")
  }

  @Test("straight pixels of a display image are converted to the same display image")
  func straightPixels() throws {
    let source = (UInt8.min...255).flatMap { alpha -> [UInt8] in [alpha, 255 - alpha, 77, alpha] }
    for (channels, bytes) in [(.rgba, source), (.rgb, Array(source.prefix(768)))] as [(PixelBuffer.Channels, [UInt8])] {
      let image = try DisplayImage(DecodedImage(try pixels(channels, bytes, width: 16)))
      let again = try DisplayImage(DecodedImage(try image.straightPixels()))
      #expect(again.isOpaque == image.isOpaque)
      #expect(again.withUnsafeBytes { Array($0) } == image.withUnsafeBytes { Array($0) })
    }
  }

  @Test("a template stays one in each frame")
  func templates() async throws {
    let image = try DisplayImage(ImageDecoder().decode(ImageFile.animated(loops: 0)))
    let template = image.asTemplate()
    #expect(!image.isTemplate && template.isTemplate && template.isSame(as: image.asTemplate()))
    for index in [0, 2] { #expect(try await template.frame(index).isTemplate) }
  }

  @Test("the memory reservation includes the bitmaps of the system")
  func drawingMemory() throws {
    let file = ImageFile.png(RGBA(1, 2, 3), width: 100, height: 100)
    let decoder = ImageDecoder(size: .fit(50, 50))
    let plain = decoder.workingMemory(for: file, metadata)
    try ImageInspector.$replacement.withValue(ScreenEngine(engine: ImageInspector.engine())) {
      #expect(decoder.workingMemory(for: file, metadata) == plain + 50 * 50 * 8)
    }
  }

  @Test("the memory reservation includes the converted pixels")
  func workingMemory() throws {
    let file = ImageFile.png(RGBA(1, 2, 3), width: 100, height: 100)
    let size = ImageProcessor.resize(.fit(50, 50))
    let difference =
      ResourceTransform.displayImage(size).firstMemory(file, metadata) - ResourceTransform.image(size).firstMemory(file, metadata)
    #expect(difference == 50 * 50 * 4)
  }
}
#endif
