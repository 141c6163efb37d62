#if canImport(ImageIO) || VIPS
import CacheCore
import ImageCodecs
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Animated images")
struct AnimationTests {
  private let file = GIFFile(frames: [(1, 10), (2, 0), (3, 7)], loops: 0).data

  @Test("the header contains the frame count, the delays and the loop count")
  func header() throws {
    let header = try ImageHeader(of: file)
    #expect(header.frameCount == 3 && header.isAnimated)
    // An unspecified delay is 100 ms, as in browsers.
    #expect(header.delays == [.milliseconds(100), .milliseconds(100), .milliseconds(70)])
    #expect(header.loopCount == nil)
    #expect(header.size == PixelSize(2, 2))
  }

  @Test("a frame that is smaller than the screen has a transparent surrounding, as in browsers")
  func smallFrames() throws {
    // A frame of 2 × 2 pixels at (1, 1) of a screen of 4 × 4 pixels.
    func moved(_ file: Data) throws -> Data {
      var bytes = Array(file)
      (bytes[6], bytes[8]) = (4, 4)
      let frame = try #require(bytes.firstIndex(of: 0x2C))
      (bytes[frame + 1], bytes[frame + 3]) = (1, 1)
      return Data(bytes)
    }
    for frames: [(UInt8, UInt8)] in [[(1, 10)], [(1, 10), (2, 10)]] {
      let small = try moved(GIFFile(frames: frames.map { (color: $0.0, delay: $0.1) }).data)
      for file in [small, small.dropLast()] {
        let image = try ImageDecoder().decode(file)
        #expect(image.size == PixelSize(4, 4) && image.frameCount == frames.count && image.header.hasAlpha)
        #expect(image.pixels[0, 0].alpha == 0 && image.pixels[3, 3].alpha == 0)
        #expect(image.pixels[1, 1] == RGBA(255, 0, 0) && image.pixels[2, 2] == RGBA(255, 0, 0))
        #expect(image.header.delays.count == (frames.count == 1 ? 0 : frames.count))
        if frames.count > 1 { #expect(try image.pixels(ofFrame: 1)[3, 3].alpha == 0) }
      }
    }
    #expect(try !ImageDecoder().decode(GIFFile(frames: [(1, 10)]).data).header.hasAlpha)
  }

  @Test("delays are those of the file, except that up to 10 ms become 100 ms, as in browsers")
  func delays() throws {
    // In milliseconds, in hundredths of a second, and as fractions.
    let stated = [0, 10, 11, 17, 19, 20]
    let webP = WebPFile(frames: stated.map { _ in TestImages.quarters() }, delays: stated)
    #expect(try ImageHeader(of: webP.data()).delays == [100, 100, 11, 17, 19, 20].map(Duration.milliseconds))
    let gif = GIFFile(frames: [0, 1, 2, 3].map { (1, $0) })
    #expect(try ImageHeader(of: gif.data).delays == [100, 100, 20, 30].map(Duration.milliseconds))
    let fractions = [(0, 0), (1, 0), (1, 100), (10, 1000), (11, 1000), (167, 10_000), (19, 1000), (20, 1000), (1, 24), (1, 60)]
    let png = AnimatedPNGFile(frames: fractions.map { .init(color: RGBA(255, 0, 0), delay: $0) })
    #expect(
      try ImageHeader(of: png.data).delays
        == [100, 100, 100, 100, 11].map(Duration.milliseconds) + [.microseconds(16_700), .milliseconds(19), .milliseconds(20)]
        + [.seconds(1) / 24, .seconds(1) / 60])
  }

  @Test("frames are decoded on demand in any order")
  func frames() throws {
    let image = try ImageDecoder().decode(file)
    #expect(image.frameCount == 3)
    #expect(image.pixels[0, 0] == RGBA(255, 0, 0))
    for index in [1, 2, 0, 2, 2, 1] {
      let expected = [RGBA(255, 0, 0), RGBA(0, 255, 0), RGBA(0, 0, 255)][index]
      #expect(try image.pixels(ofFrame: index)[1, 1] == expected)
    }
    #expect(image.original == file)
    #expect(image.cost >= image.size.area * 3 + file.count)
    for index in [-1, 3] {
      let error = #expect(throws: CacheError.self) { try image.pixels(ofFrame: index) }
      #expect(error?.code == .misuse)
    }
  }

  @Test("all frames have the requested size")
  func sizes() throws {
    let file = GIFFile(width: 4, height: 4, frames: [(1, 10), (2, 10)]).data
    let image = try ImageDecoder(size: .fit(2, 2)).decode(file)
    #expect(image.size == PixelSize(2, 2))
    let second = try image.pixels(ofFrame: 1)
    #expect(second.size == PixelSize(2, 2))
    #expect(second[0, 0] == RGBA(0, 255, 0))
  }

  @Test("an animated image is still if only its first frame is requested")
  func first() throws {
    let image = try ImageDecoder { $0.firstFrameOnly = true }.decode(file)
    #expect(image.frameCount == 1 && image.delays.isEmpty && image.original == nil)
    #expect(image.pixels[0, 0] == RGBA(255, 0, 0))
    #expect(image.header.frameCount == 3)
  }

  @Test("many threads can decode frames at the same time")
  func concurrency() async throws {
    let image = try ImageDecoder().decode(file)
    try await withThrowingTaskGroup(of: Bool.self) { group in
      for number in 0..<60 {
        group.addTask {
          let expected = [RGBA(255, 0, 0), RGBA(0, 255, 0), RGBA(0, 0, 255)][number % 3]
          return try image.pixels(ofFrame: number % 3)[0, 0] == expected
        }
      }
      for try await isRight in group { #expect(isRight) }
    }
  }
}
#endif
