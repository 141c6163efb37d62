#if canImport(ImageIO) || VIPS
import CacheTesting
import CacheUI
import Foundation
import HTTPTypes
import Testing

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

  @Test("the memory reservation includes the converted pixels")
  func workingMemory() throws {
    let file = ImageFile.png(RGBA(1, 2, 3), width: 100, height: 100)
    let metadata = StoredMetadata(
      request: HTTPRequest(method: .get, scheme: "https", authority: "a", path: "/"), response: HTTPResponse(status: .ok),
      requestTime: Timestamp(seconds: 0), responseTime: Timestamp(seconds: 0),
      revision: .random(), freshness: Freshness(generatedAt: Timestamp(seconds: 0), freshUntil: .distantFuture))
    let size = ImageProcessor.resize(.fit(50, 50))
    let difference =
      ResourceTransform.displayImage(size).firstMemory(file, metadata) - ResourceTransform.image(size).firstMemory(file, metadata)
    #expect(difference == 50 * 50 * 4)
  }
}
#endif
