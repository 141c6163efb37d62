import CacheCore
import ImageCodecs
import Testing

@Suite("Processors")
struct ImageProcessorTests {
  private let image = TestImages.quarters(64, 48)

  private func corners(_ pixels: PixelBuffer) -> [RGBA] { TestImages.quarters(of: pixels) }

  @Test("a processor's name lists its steps and their parameters in order")
  func names() {
    let white = RGBA(255, 255, 255)
    let steps: [ImageProcessor] = [
      .none, .resize(.fit(1, 2)), .resize(.fit(1, 2).enlarging), .crop(1, 2), .crop(2, 1), .crop(1, 2, anchor: .top),
      .crop(PixelRect(x: 1, y: 2, size: PixelSize(3, 4))), .crop(attention: 1, 2), .fill(1, 2), .rotate(quarterTurns: 1),
      .rotate(quarterTurns: 2), .flipHorizontally, .flipVertically, .gray, .tint(white), .tint(white, amount: 0.25),
      .tint(RGBA(0, 0, 0)), .roundCorners(radius: 1), .roundCorners(radius: 2), .circle, .border(width: 1, color: white),
      .border(width: 2, color: white), .border(width: 1, color: RGBA(0, 0, 0)), .border(width: 1, color: white, radius: 3),
      .blur(sigma: 1), .blur(sigma: 2), .custom("a") { $0 }, .custom("b") { $0 }, .gray + .circle, .circle + .gray,
    ]
    #expect(Set(steps.map(\.id)).count == steps.count)
    #expect("\(ImageProcessor.resize(.fit(400, 300)) + .gray)" == "resize(fit(400x300))|gray")
    #expect((ImageProcessor.gray + .circle) + .flipVertically == ImageProcessor.gray + (.circle + .flipVertically))
    #expect(ImageProcessor.rotate(quarterTurns: -1).id == ImageProcessor.rotate(quarterTurns: 3).id)
    // One custom step cannot have the identity of two steps.
    #expect(ImageProcessor.custom("a|gray") { $0 }.id != (.custom("a") { $0 } + .gray).id)
  }

  @Test("rotation by quarter turns and mirroring move the pixels")
  func turns() throws {
    let (red, green, blue, gray) = (TestImages.colors[0], TestImages.colors[1], TestImages.colors[2], TestImages.colors[3])
    let cases: [(ImageProcessor, PixelSize, [RGBA])] = [
      (.rotate(quarterTurns: 0), PixelSize(64, 48), [red, green, blue, gray]),
      (.rotate(quarterTurns: 1), PixelSize(48, 64), [blue, red, gray, green]),
      (.rotate(quarterTurns: 2), PixelSize(64, 48), [gray, blue, green, red]),
      (.rotate(quarterTurns: 3), PixelSize(48, 64), [green, gray, red, blue]),
      (.rotate(quarterTurns: -5), PixelSize(48, 64), [green, gray, red, blue]),
      (.flipHorizontally, PixelSize(64, 48), [green, red, gray, blue]),
      (.flipVertically, PixelSize(64, 48), [blue, gray, red, green]),
    ]
    for (processor, size, colors) in cases {
      let turned = try processor.process(image)
      #expect(turned.size == size, "\(processor)")
      #expect(corners(turned.pixels) == colors, "\(processor)")
    }
    let around = try (ImageProcessor.rotate(quarterTurns: 1) + .rotate(quarterTurns: 3)).process(image)
    #expect(around.pixels.bytes == image.pixels.bytes)
  }

  @Test("crops follow the anchor or the rectangle")
  func crops() throws {
    #expect(try ImageProcessor.crop(10, 10, anchor: .topRight).process(image).pixels[5, 5] == TestImages.colors[1])
    #expect(try ImageProcessor.crop(10, 10, anchor: .bottomLeft).process(image).pixels[9, 0] == TestImages.colors[2])
    let middle = try ImageProcessor.crop(PixelRect(x: 31, y: 23, size: PixelSize(2, 2))).process(image)
    #expect((0..<4).map { middle.pixels[$0 % 2, $0 / 2] } == TestImages.colors)
    #expect(try ImageProcessor.crop(500, 10).process(image).size == PixelSize(64, 10))
    let outside = #expect(throws: CacheError.self) {
      try ImageProcessor.crop(PixelRect(x: 64, y: 0, size: PixelSize(5, 5))).process(image)
    }
    #expect(outside?.code == .invalidConfiguration)
  }

  @Test("round corners and circles have soft edges")
  func round() throws {
    let rounded = try ImageProcessor.roundCorners(radius: 12).process(image).pixels
    #expect(rounded[0, 0].alpha == 0 && rounded[63, 47].alpha == 0 && rounded[63, 0].alpha == 0)
    #expect(rounded[12, 0] == RGBA(255, 0, 0) && rounded[0, 12] == RGBA(255, 0, 0))
    #expect((0..<12).contains { (1...254).contains(rounded[$0, 0].alpha) })
    // Equal on all sides
    for (x, y) in [(1, 2), (3, 1), (5, 0), (4, 4)] {
      let alphas = [rounded[x, y], rounded[63 - x, y], rounded[x, 47 - y], rounded[63 - x, 47 - y]].map(\.alpha)
      #expect(Set(alphas).count == 1)
    }
    let circle = try ImageProcessor.circle.process(image)
    #expect(circle.size == PixelSize(48, 48))
    #expect(circle.pixels[0, 0].alpha == 0 && circle.pixels[24, 0].alpha > 250 && circle.pixels[24, 24].alpha == 255)
    let pixels = circle.pixels
    let covered = (0..<48 * 48).reduce(0) { $0 + Int(pixels[$1 % 48, $1 / 48].alpha) } / 255
    // Within one percent of the area of a circle
    #expect(abs(Double(covered) - 3.14159 * 24 * 24) < 18)
    #expect(try ImageProcessor.roundCorners(radius: 0).process(image).pixels.bytes == image.pixels.bytes)
  }

  @Test("a border is drawn inside the edges")
  func border() throws {
    let white = RGBA(255, 255, 255)
    let bordered = try ImageProcessor.border(width: 3, color: white).process(image).pixels
    #expect(bordered.size == image.size)
    #expect([bordered[0, 0], bordered[2, 2], bordered[63, 47], bordered[61, 20]].allSatisfy { $0 == white })
    #expect(bordered[3, 3] == RGBA(255, 0, 0) && bordered[60, 20] == RGBA(0, 255, 0))
    let half = try ImageProcessor.border(width: 3, color: RGBA(255, 255, 255, 128)).process(image).pixels
    #expect(isClose(half[1, 1], RGBA(255, 128, 128), within: 1))
  }

  @Test("images are converted to gray and tinted")
  func colors() throws {
    let gray = try ImageProcessor.gray.process(image)
    #expect(gray.cost == 64 * 48)
    #expect(corners(gray.pixels) == [RGBA(54, 54, 54), RGBA(182, 182, 182), RGBA(19, 19, 19), RGBA(128, 128, 128)])
    let seen = try ImageProcessor.gray.process(TestImages.quarters(8, 8, alpha: 9))
    #expect(seen.pixels[7, 7] == RGBA(128, 128, 128, 9))
    let tinted = try ImageProcessor.tint(RGBA(0, 0, 0), amount: 0.5).process(image)
    #expect(isClose(tinted.pixels[0, 0], RGBA(127, 0, 0), within: 1))
    #expect(try ImageProcessor.tint(RGBA(1, 2, 3), amount: .nan).process(image).pixels.bytes == image.pixels.bytes)
    #expect(try ImageProcessor.tint(RGBA(1, 2, 3), amount: 1).process(image).pixels[9, 9] == RGBA(1, 2, 3))
  }

  @Test("a blur approximates a Gaussian and does not spread the color of transparent pixels")
  func blur() throws {
    // Given one white pixel on black
    let size = PixelSize(61, 61)
    let dot = try #require(PixelBuffer(size: size, channels: .gray) { $0[30 * 61 + 30] = 255 })
    // When
    let blurred = try ImageProcessor.blur(sigma: 2).process(DecodedImage(dot)).pixels
    // Then its light is spread evenly, within rounding
    #expect(blurred[30, 30].red == 10 || blurred[30, 30].red == 9 || blurred[30, 30].red == 11)
    #expect(blurred[26, 30] == blurred[34, 30] && blurred[30, 26] == blurred[30, 34] && blurred[26, 30] == blurred[30, 26])
    #expect(blurred[30, 30].red > blurred[32, 30].red && blurred[10, 30].red == 0)
    // A uniform image does not change, including its edges.
    let even = try #require(
      PixelBuffer(size: PixelSize(9, 5), channels: .rgb) { $0.copyBytes(from: repeatElement(77, count: 135)) })
    for sigma in [0.5, 3, 50, 5000] {
      #expect(try ImageProcessor.blur(sigma: sigma).process(DecodedImage(even)).pixels[8, 4] == RGBA(77, 77, 77))
    }
    // Visible red beside transparent green.
    let halves = try #require(
      PixelBuffer(size: PixelSize(20, 4)) { bytes in
        for pixel in 0..<80 {
          bytes.storeBytes(of: pixel % 20 < 10 ? 0xFF00_00FF : 0x0000_FF00, toByteOffset: pixel * 4, as: UInt32.self)
        }
      })
    let soft = try ImageProcessor.blur(sigma: 2).process(DecodedImage(halves)).pixels
    for x in 0..<20 { #expect(soft[x, 1].green == 0, "\(soft[x, 1])") }
    #expect((60...200).contains(soft[10, 1].alpha) && soft[10, 1].red > 240)
    #expect(try ImageProcessor.blur(sigma: .nan).process(image).pixels.bytes == image.pixels.bytes)
  }

  @Test("a processor can be a custom closure")
  func custom() throws {
    let inverted = ImageProcessor.custom("invert") { pixels in
      pixels.withUnsafeBytes { from in
        PixelBuffer(size: pixels.size, channels: pixels.channels) { to in
          for index in from.indices { to[index] = 255 - from[index] }
        }
      } ?? pixels
    }
    #expect(try inverted.process(image).pixels[0, 0] == RGBA(0, 255, 255))
    let failing = ImageProcessor.custom("never") { _ throws(CacheError) in throw CacheError(.refused, reason: "no") }
    #expect(throws: CacheError.self) { try failing.process(image) }
  }

  @Test("a processor preserves scale and URL, works on one pixel, and stops with its task")
  func edges() async throws {
    let dot = TestImages.quarters(1, 1)
    let all: ImageProcessor =
      .gray + .circle + .blur(sigma: 3) + .roundCorners(radius: 9) + .rotate(quarterTurns: 1) + .crop(5, 5)
    #expect(try all.process(dot).size == PixelSize(1, 1))
    let image = DecodedImage(dot.pixels, scale: 3)
    #expect(try ImageProcessor.gray.process(image).scale == 3)
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return #expect(throws: CacheError.self) { try all.process(dot) }?.isCancellation
    }
    #expect(await task.value == true)
  }
}

extension ImageProcessor {
  fileprivate static func == (a: ImageProcessor, b: ImageProcessor) -> Bool { a.id == b.id }
}
