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

  @Test(
    "a frame that is smaller than the screen has a transparent surrounding, as in browsers",
    // libnsgif distrusts screens of 640 × 480 pixels and of some other common sizes, and sides above 2,048.
    arguments: [PixelSize(4, 4), PixelSize(640, 480), PixelSize(1600, 1200), PixelSize(2049, 4), PixelSize(5, 2100)])
  func smallFrames(screen: PixelSize) throws {
    // The first frame has 2 × 2 pixels at (1, 1).
    func moved(_ file: Data) throws -> Data {
      var bytes = Array(file)
      bytes.replaceSubrange(6..<10, with: [screen.width, screen.height].flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] })
      let frame = try #require(bytes[13...].firstIndex(of: 0x2C))
      (bytes[frame + 1], bytes[frame + 3]) = (1, 1)
      return Data(bytes)
    }
    for frames: [(UInt8, UInt8)] in [[(1, 10)], [(1, 10), (2, 20)]] {
      let small = try moved(GIFFile(frames: frames.map { (color: $0.0, delay: $0.1) }, loops: 3).data)
      for file in [small, small.dropLast()] {
        let image = try ImageDecoder().decode(file)
        #expect(image.size == screen && image.frameCount == frames.count && image.header.hasAlpha)
        #expect(image.pixels[0, 0].alpha == 0 && image.pixels[3, 3].alpha == 0)
        #expect(image.pixels[screen.width - 1, screen.height - 1].alpha == 0)
        #expect(image.pixels[1, 1] == RGBA(255, 0, 0) && image.pixels[2, 2] == RGBA(255, 0, 0))
        #expect(image.header.delays == (frames.count == 1 ? [] : [.milliseconds(100), .milliseconds(200)]))
        guard frames.count > 1 else { continue }
        // The file states the number of repetitions.
        #expect(image.header.loopCount == 4)
        let second = try image.pixels(ofFrame: 1)
        #expect(second[3, 3].alpha == 0 && second[0, 0] == RGBA(0, 255, 0) && second[2, 2] == RGBA(255, 0, 0))
      }
    }
    #expect(try !ImageDecoder().decode(GIFFile(frames: [(1, 10)]).data).header.hasAlpha)
  }

  @Test(
    "a first frame that exceeds the screen enlarges it, as in browsers",
    arguments: [(1, 3, 0, PixelSize(2, 3)), (3, 1, 0, PixelSize(3, 2)), (2, 2, 1, PixelSize(3, 3)), (1, 1, 5, PixelSize(7, 7))])
  func largeFrames(width: UInt8, height: UInt8, offset: UInt8, size: PixelSize) throws {
    let image = try ImageDecoder().decode(gif(width, height, offset: offset))
    #expect(image.size == size)
    #expect(image.pixels[Int(offset) + 1, Int(offset) + 1] == RGBA(255, 0, 0))
  }

  /// A GIF with a screen of another size than its frames of 2 × 2 pixels.
  private func gif(_ width: UInt8, _ height: UInt8, offset: UInt8 = 0, disposal: UInt8? = nil) throws -> Data {
    var bytes = Array(GIFFile(frames: [(1, 10), (2, 10), (3, 10)]).data)
    (bytes[6], bytes[8]) = (width, height)
    let frame = try #require(bytes[13...].firstIndex(of: 0x2C))
    (bytes[frame + 1], bytes[frame + 3]) = (offset, offset)
    // The disposal method, with the first color transparent.
    if let disposal { bytes[frame - 5] = disposal << 2 | 1 }
    return Data(bytes)
  }

  @Test("a small first frame with transparent pixels stays, or is removed, as its disposal method states", arguments: 0...3)
  func disposal(method: UInt8) throws {
    let image = try ImageDecoder().decode(gif(9, 9, offset: 3, disposal: method))
    #expect(image.size == PixelSize(9, 9) && image.pixels[4, 4] == RGBA(255, 0, 0) && image.pixels[8, 8].alpha == 0)
    let second = try image.pixels(ofFrame: 1)
    #expect(second[0, 0] == RGBA(0, 255, 0) && second[8, 8].alpha == 0)
    #expect(second[4, 4] == (method < 2 ? RGBA(255, 0, 0) : RGBA(0, 0, 0, 0)))
  }

  @Test("a cut file has the size and the transparent surrounding of the whole one")
  func cutSmallFrames() throws {
    let cut = try gif(9, 9).dropLast(6)
    let first = try ImageDecoder { $0.firstFrameOnly = true }.decode(cut)
    #expect(first.size == PixelSize(9, 9) && first.pixels[8, 8].alpha == 0 && first.pixels[1, 1] == RGBA(255, 0, 0))
    let partial = try ImageDecoder { $0.allowsPartial = true }.decode(cut)
    #expect(partial.size == PixelSize(9, 9) && partial.isPartial)
  }

  @Test(
    "the image data of a transparent screen have as many pixels as the screen",
    arguments: [1, 2, 3, 5, 8, 9, 10, 27, 28, 29, 4_000, 8_400_000, 2_097_152])
  func screens(pixels: Int) throws {
    // A screen of one row, or of rows of 4,096 pixels.
    let screen = pixels < 5_000 ? PixelSize(max(pixels, 3), 3) : PixelSize(4_096, pixels / 4_096)
    var bytes = Array(GIFFile(frames: [(1, 10)]).data)
    bytes.replaceSubrange(6..<10, with: [screen.width, screen.height].flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] })
    let frames = GIFFrames(Data(bytes))
    #expect(frames.leavesGap)
    let file = Array(frames.addingTransparentScreen(to: Data(bytes)))
    // The screen's frame follows the palette of the file: 8 bytes of control, 10 of the descriptor, 6 of its palette.
    #expect(try Self.pixelCount(of: file[(13 + 12 + 8 + 10 + 6)...]) == screen.area)
  }

  /// The number of pixels in the image data of a GIF that begin here: a decoder that knows only the lengths of the runs.
  private static func pixelCount(of data: ArraySlice<UInt8>) throws -> Int {
    let root = Int(data[data.startIndex])
    var (next, bytes) = (data.startIndex + 1, [UInt8]())
    while data[next] > 0 {
      bytes += data[(next + 1)...(next + Int(data[next]))]
      next += Int(data[next]) + 1
    }
    var (count, width, position) = (0, root + 1, 0)
    let initial = [Int](repeating: 1, count: 1 << root) + [0, 0]
    var (lengths, former) = (initial, 0)
    while true {
      let code = (0..<width).reduce(0) { $0 | Int(bytes[(position + $1) / 8] >> ((position + $1) % 8) & 1) << $1 }
      position += width
      if code == 1 << root {
        (lengths, former, width) = (initial, 0, root + 1)
        continue
      }
      if code == 1 << root + 1 { return count }
      if former > 0 { lengths.append(former + 1) }
      former = try #require(code < lengths.count ? lengths[code] : nil)
      count += former
      if lengths.count == 1 << width, width < 12 { width += 1 }
    }
  }

  @Test("delays are those of the file, except that up to 10 ms become 100 ms, as in browsers")
  func delays() throws {
    // In milliseconds, in hundredths of a second, and as fractions.
    let stated = [0, 10, 11, 17, 19, 20]
    if TestImages.hasWebP {
      let webP = WebPFile(frames: stated.map { _ in TestImages.quarters() }, delays: stated)
      #expect(try ImageHeader(of: webP.data()).delays == [100, 100, 11, 17, 19, 20].map(Duration.milliseconds))
    }
    let gif = GIFFile(frames: [0, 1, 2, 3].map { (1, $0) })
    #expect(try ImageHeader(of: gif.data).delays == [100, 100, 20, 30].map(Duration.milliseconds))
    let fractions = [(0, 0), (1, 0), (1, 100), (10, 1000), (11, 1000), (167, 10_000), (19, 1000), (20, 1000), (1, 24), (1, 60)]
    let png = AnimatedPNGFile(frames: fractions.map { .init(color: RGBA(255, 0, 0), delay: $0) })
    let delays = try ImageHeader(of: png.data).delays
    let expected: [Duration] =
      [100, 100, 100, 100, 11].map { .milliseconds($0) } + [.microseconds(16_700), .milliseconds(19), .milliseconds(20)]
      + [.seconds(1) / 24, .seconds(1) / 60]
    try #require(delays.count == expected.count)
    // ImageIO gives a fraction as a number of seconds.
    for (delay, expected) in zip(delays, expected) { #expect(abs((delay - expected) / .microseconds(1)) < 1) }
  }

  @Test("what ImageIO reports about an animation becomes the properties of the header")
  func reported() {
    #expect(ImageHeader.delay(seconds: 0.07) == .milliseconds(70))
    #expect(ImageHeader.delay(seconds: 1.0 / 24) == .microseconds(41_667))
    #expect([-1, .nan, .infinity, -.infinity].map(ImageHeader.delay(seconds:)) == Array(repeating: .milliseconds(100), count: 4))
    #expect(ImageHeader.delay(seconds: 1e300) == .seconds(1_000_000))
    // A GIF without a number of loops is shown once, and an animated PNG or WebP always has a number.
    #expect(ImageHeader.loopCount(stated: nil, .gif) == 1)
    #expect(ImageHeader.loopCount(stated: nil, .png) == nil)
    #expect(ImageHeader.loopCount(stated: 0, .gif) == nil)
    #expect(ImageHeader.loopCount(stated: 4, .gif) == 4)
    #expect([1, 2, 4, 8, 10, 12, 16, 32].map(ImageHeader.decodedDepth) == [8, 8, 8, 8, 16, 16, 16, 16])
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
