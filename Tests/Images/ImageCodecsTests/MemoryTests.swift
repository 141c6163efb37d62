#if canImport(ImageIO) || VIPS
import CacheCore
import ImageFiles
import Testing

@testable import ImageCodecs

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Exhausted memory")
struct MemoryTests {
  /// Runs `work` with enough memory for the given number of images.
  private func with<Result>(blocks: Int, _ work: () throws -> Result) rethrows -> Result {
    let left = Lock(blocks)
    let usual = PixelMemory.allocate
    return try PixelMemory.$allocate.withValue({ count in
      let isThere = left.withLock { left in
        left -= 1
        return left >= 0
      }
      return isThere ? usual(count) : nil
    }) { try work() }
  }

  @Test("every processing step throws an error when memory runs out")
  func processors() throws {
    let (color, white) = (RGBA(1, 2, 3), RGBA(255, 255, 255))
    let steps: [ImageProcessor] = [
      .resize(.exact(20, 20)), .crop(5, 5), .crop(attention: 5, 5), .fill(10, 30), .rotate(quarterTurns: 1), .flipVertically,
      .gray,
      .tint(color), .roundCorners(radius: 4), .circle, .border(width: 2, color: white), .blur(sigma: 2),
      .blur(sigma: 3) + .gray + .circle,
    ]
    for image in [
      TestImages.quarters(), TestImages.quarters(alpha: 9), try ImageProcessor.gray.process(TestImages.quarters(alpha: 9)),
    ] {
      for step in steps {
        let whole = try step.process(image).pixels.bytes
        var failures = 0
        for blocks in 0..<40 {
          do {
            let processed = try with(blocks: blocks) { try step.process(image) }
            #expect(processed.pixels.bytes == whole)
            break
          } catch let error as CacheError {
            #expect(error.code == .imageLimitExceeded, "\(step): \(error)")
            failures += 1
          }
        }
        #expect(failures < 40)
      }
    }
  }

  @Test("a size for which the process has not enough memory is refused, and a smaller one is not")
  func available() throws {
    let file = try ImageEncoder(.png).encode(TestImages.quarters())
    try HostResources.$availableInTests.withValue(3_500) { () throws in
      let error = #expect(throws: CacheError.self) { try ImageDecoder().decode(file) }
      #expect(error?.code == .imageLimitExceeded)
      #expect(error?.reason.hasPrefix("PNG: 64 × 48 pixels need ") == true)
      #expect(error?.reason.hasSuffix("the process may use 3500; request a smaller size") == true)
      #expect(throws: CacheError.self) { try ImageDecoder().decodeForScreen(file, url: nil) }
      #expect(try ImageDecoder(size: .fit(4, 3)).decode(file).pixels.size == PixelSize(4, 3))
    }
    try HostResources.$availableInTests.withValue(0) { () throws in
      #expect(throws: CacheError.self) { try ImageDecoder(size: .fit(4, 3)).decode(file) }
    }
  }

  @Test("decoding a frame throws an error, and existing pixels are returned unconverted")
  func frames() throws {
    let file = GIFFile(width: 8, height: 8, frames: [(1, 10), (2, 10), (3, 10), (1, 10)]).data
    for size in [nil, ImageSizing.fit(4, 4)] {
      for blocks in 0..<3 {
        let error = #expect(throws: CacheError.self) {
          try with(blocks: blocks) { try ImageDecoder(size: size).decode(file).pixels(ofFrame: 2) }
        }
        #expect(error?.code == .imageLimitExceeded || error?.code == .other, "\(blocks)")
      }
      let image = try ImageDecoder(size: size).decode(file)
      for index in 0..<4 where image.buffer.channels != .rgba {
        let error = #expect(throws: CacheError.self) { try with(blocks: 0) { try image.pixels(ofFrame: index) } }
        #expect(error?.code == .imageLimitExceeded)
      }
      #expect(try image.pixels(ofFrame: 1)[1, 1] == RGBA(0, 255, 0))
    }
    let (opaque, clear) = (TestImages.quarters(), TestImages.quarters(alpha: 3).pixels)
    let pixels = with(blocks: 0) { opaque.pixels }
    #expect(pixels.channels == .rgb && pixels.byteCount == 64 * 48 * 3)
    #expect(areClose(TestImages.quarters(of: pixels), TestImages.colors, within: 0))
    let flat = #expect(throws: CacheError.self) {
      try with(blocks: 0) { try clear.flattened(onto: RGBA(1, 1, 1)) }
    }
    #expect(flat?.reason == "not enough memory for an image of 64 × 48 pixels")
  }
}
#endif
