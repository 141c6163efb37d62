#if canImport(ImageIO) || VIPS
import CacheCore
import ImageFiles
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@testable import ImageCodecs

@Suite("Processing decoded images")
struct ProcessedDecodingTests {
  @Test("resizing keeps alpha straight")
  func resize() throws {
    let small = try ImageProcessor.resize(.fit(32, 32)).process(TestImages.quarters())
    #expect(small.size == PixelSize(32, 24))
    #expect(areClose(TestImages.quarters(of: small.pixels), TestImages.colors, within: 2))
    let clear = try ImageProcessor.resize(.exact(32, 24)).process(TestImages.quarters(alpha: 128))
    #expect(
      areClose(TestImages.quarters(of: clear.pixels), TestImages.colors.map { RGBA($0.red, $0.green, $0.blue, 128) }, within: 2))
    let large = try ImageProcessor.resize(.fit(128, 128).enlarging).process(TestImages.quarters())
    #expect(large.size == PixelSize(128, 96))
    let filled = try ImageProcessor.fill(20, 20).process(TestImages.quarters())
    #expect(filled.size == PixelSize(20, 20))
    let error = #expect(throws: CacheError.self) {
      try ImageProcessor.resize(.exact(60_000, 60_000)).process(TestImages.quarters())
    }
    #expect(error?.code == .imageLimitExceeded)
  }

  @Test(
    "the pixels of a decoded image have the channels of the file",
    arguments: [
      // An opaque photo, also if the decoder adds alpha; an image with alpha; an image of which only the decoder knows.
      (false, false, false, PixelBuffer.Channels.rgb), (false, true, false, .rgb), (false, true, true, .rgba),
      (false, true, nil, .rgba), (false, false, nil, .rgb), (false, false, true, .rgb), (true, false, nil, .gray),
      (true, true, false, .gray), (true, true, true, .grayAlpha),
    ] as [(Bool, Bool, Bool?, PixelBuffer.Channels)])
  func channels(isGray: Bool, decodedAlpha: Bool, fileAlpha: Bool?, expected: PixelBuffer.Channels) {
    #expect(PixelBuffer.Channels(isGray: isGray, decodedAlpha: decodedAlpha, fileAlpha: fileAlpha) == expected)
  }

  @Test(
    "pixels are narrowed to their channels without a change",
    arguments: [PixelBuffer.Channels.gray, .grayAlpha, .rgb, .rgba])
  func narrowed(channels: PixelBuffer.Channels) throws {
    let size = PixelSize(7, 5)
    let source = PixelBuffer(size: size, channels: channels) { bytes in
      for index in bytes.indices { bytes[index] = UInt8(truncatingIfNeeded: index &* 37) }
    }
    let pixels = try #require(source)
    let narrowed = try pixels.widened().narrowed(to: channels)
    #expect(narrowed.channels == channels && narrowed.bytes == pixels.bytes)
  }

  @Test("an image drawn without alpha is stored as JPEG")
  func storable() throws {
    let photo = DecodedImage(try TestImages.quarters().pixels.narrowed(to: .rgb))
    let cutout = DecodedImage(TestImages.quarters(alpha: 9).pixels)
    #expect(ImageEncoder.jpeg.canEncode(photo) && ImageEncoder.automatic.format(for: photo) == .jpeg)
    #expect(!ImageEncoder.jpeg.canEncode(cutout) && ImageEncoder.automatic.format(for: cutout) != .jpeg)
    #expect(photo.cost == 64 * 48 * 3)
  }

  @Test("an attention crop finds the salient part")
  func attention() throws {
    // Given a bright spot at the right on a uniform background
    let size = PixelSize(300, 100)
    let pixels = PixelBuffer(size: size, channels: .rgb) { bytes in
      for y in 0..<100 {
        for x in 0..<300 {
          let isSpot = (240..<280).contains(x) && (30..<70).contains(y)
          let color: (UInt8, UInt8, UInt8) = isSpot ? ((x + y) % 7 < 3 ? (255, 120, 60) : (90, 20, 10)) : (200, 200, 200)
          (bytes[(y * 300 + x) * 3], bytes[(y * 300 + x) * 3 + 1], bytes[(y * 300 + x) * 3 + 2]) = color
        }
      }
    }
    let image = DecodedImage(try #require(pixels))
    // When
    let cropped = try ImageProcessor.crop(attention: 100, 100).process(image)
    // Then
    #expect(cropped.size == PixelSize(100, 100))
    let kept = cropped.pixels
    let spot = (0..<10_000).count { kept[$0 % 100, $0 / 100] != RGBA(200, 200, 200) }
    #expect(spot > 1500)
  }

  @Test("every frame of an animated image is processed")
  func animated() throws {
    let file = GIFFile(width: 4, height: 2, frames: [(1, 10), (2, 10)]).data
    let image = try (ImageProcessor.rotate(quarterTurns: 1) + .gray).process(ImageDecoder().decode(file))
    #expect(image.frameCount == 2)
    #expect(image.size == PixelSize(2, 4))
    let second = try image.pixels(ofFrame: 1)
    #expect(second.size == PixelSize(2, 4))
    #expect(second[1, 3] == RGBA(182, 182, 182))
  }

  @Test("the decoder performs a first resize, and the result is cached under its own key")
  func transform() async throws {
    let file = try ImageEncoder(.jpeg, quality: 95).encode(TestImages.quarters(640, 480))
    let transform = ResourceTransform.image(.resize(.fit(40, 40)) + .gray)
    let image = try await transform.make(ResourceBody(file), .whole(of: file))
    #expect(image.size == PixelSize(40, 30) && image.cost == 40 * 30)
    #expect(image.url?.absoluteString == "https://example.com/a.jpg")
    #expect(transform.cost(image) == image.cost)
    #expect(transform.id.contains("fit(40x40)") && transform.id.hasSuffix("ImageProcessor#4:gray"))
    #expect(ResourceTransform.image(.gray).id != ResourceTransform.image().id)
    #expect(ResourceTransform.image(size: .fit(40, 40)).id == ResourceTransform.image(.resize(.fit(40, 40))).id)
  }

  @Test("a transform refuses an image beyond its limits, and the limits are part of its identity")
  func limits() async throws {
    let file = try ImageEncoder(.png).encode(TestImages.quarters())
    let limits = ImageLimits { $0.pixels = 3_071 }
    let images = [
      ResourceTransform.image(limits: limits), .image(.gray, limits: limits), .image(size: .fit(4, 4), limits: limits),
      .image(.resize(.fit(4, 4)), limits: limits, storedAs: .png),
    ]
    for transform in images {
      let error = await #expect(throws: CacheError.self) { try await transform.make(ResourceBody(file), .whole(of: file)) }
      #expect(error?.code == .imageLimitExceeded)
    }
    let maker = ResourceTransform.imageFile(.gray, as: .png, limits: limits)
    let error = await #expect(throws: CacheError.self) { try await maker.make(ResourceBody(file), .whole(of: file)) }
    #expect(error?.code == .imageLimitExceeded && maker.id != ResourceTransform.imageFile(.gray, as: .png).id)
    #expect(Set(images.map(\.id)).count == 4 && images[1].id != ResourceTransform.image(.gray).id)
  }

  @Test("each step is a separate transform, so that transforms share their common first steps")
  func commonSteps() throws {
    let runs = Lock(0)
    let counted = ImageProcessor([
      ImageStep(name: "counted") { pixels, _ in
        runs.withLock { $0 += 1 }
        return pixels
      }
    ])
    let picture = TestImages.quarters(16, 16)
    let transforms = [counted + .gray, counted + .circle, counted + .gray + .circle].map { ResourceTransform.image($0) }
    #expect(Set(transforms.map(\.id)).count == 3 && transforms.allSatisfy { $0.stem(1) == ResourceTransform.image(counted).id })

    // Like a manager: by common prefixes.
    var made: [String: DecodedImage] = [:]
    for transform in transforms {
      var image = picture
      for (index, change) in transform.changes.enumerated() {
        let stem = transform.stem(index + 1)
        image = try made[stem] ?? change.apply(image, .whole(of: Data()))
        made[stem] = image
      }
    }

    #expect(runs.withLock { $0 } == 1 && made.count == 4)
  }
}
#endif
