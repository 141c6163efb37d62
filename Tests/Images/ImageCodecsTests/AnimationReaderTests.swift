#if VIPS && os(Linux)
import CacheCore
import ImageFiles
import Testing

@testable import ImageCodecs

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("The frame reader of animated images")
struct AnimationReaderTests {
  private let colors = [RGBA(255, 0, 0), RGBA(0, 255, 0), RGBA(0, 0, 255)]

  @Test("the reader exists, and counts, only while middle frames are decoded")
  func cost() throws {
    let image = try ImageDecoder().decode(GIFFile(width: 40, height: 30, frames: (0..<6).map { (UInt8($0 % 3 + 1), 10) }).data)
    let still = image.cost
    for index in [0, 1, 2, 4, 5, 0, 3, 5] {
      #expect(try image.pixels(ofFrame: index)[20, 20] == colors[index % 3])
      let isHeld = image.cost > still
      #expect(isHeld == (1...4).contains(index) || index == 0, "frame \(index)")
      if isHeld { #expect(image.cost >= still + 40 * 30 * 4) }
    }
    #expect(image.cost == still)
  }

  @Test("skipping frames checks the deadline between frames and continues after a timeout")
  func ahead() throws {
    let file = GIFFile(width: 20, height: 20, frames: (0..<600).map { (UInt8($0 % 3 + 1), 10) }).data
    let image = try ImageDecoder().decode(file)
    for index in [598, 599, 300] { #expect(try image.pixels(ofFrame: index)[10, 10] == colors[index % 3]) }
    // Given no time
    let loader = try #require(VIPSLibrary.loader(of: .gif))
    let frames = VIPSFrames(
      VIPSFile(file, .gif), image.header, loader, size: image.size, strict: true, limits: ImageLimits { $0.time = .zero })
    let still = frames.cost
    // Then
    let error = #expect(throws: CacheError.self) { try frames.frame(598) }
    #expect(error?.reason == "GIF: decoding took longer than the limit of 0.0 seconds")
    #expect(frames.cost > still)
  }

  @Test("decoding stops when its task is cancelled")
  func cancellation() async throws {
    let image = try ImageDecoder().decode(GIFFile(width: 200, height: 200, frames: Array(repeating: (1, 10), count: 600)).data)
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return #expect(throws: CacheError.self) { try image.pixels(ofFrame: 500) }?.isCancellation
    }
    #expect(await task.value == true)
  }

  @Test("the frames of a WebP are rotated by their EXIF orientation", arguments: 1...8)
  func orientations(number: Int) throws {
    let orientation = try #require(ImageOrientation(rawValue: number))
    // Given frames that the orientation makes upright: the stored frames are rotated in reverse.
    let undo: [Int: ImageProcessor] = [
      1: .none, 2: .flipHorizontally, 3: .rotate(quarterTurns: 2), 4: .flipVertically,
      5: .rotate(quarterTurns: 1) + .flipHorizontally, 6: .rotate(quarterTurns: -1),
      7: .rotate(quarterTurns: -1) + .flipHorizontally, 8: .rotate(quarterTurns: 1),
    ]
    let stored = try #require(undo[number]).process(TestImages.quarters())
    let file = try WebPFile(frames: [stored, stored, stored], orientation: number).data()
    // Then
    #expect(try ImageHeader(of: file).orientation == orientation)
    for (size, expected) in [(nil, PixelSize(64, 48)), (ImageSizing.fit(32, 32), PixelSize(32, 24))] {
      let image = try ImageDecoder(size: size).decode(file)
      #expect(image.frameCount == 3)
      for index in 0..<3 {
        let pixels = try image.pixels(ofFrame: index)
        #expect(pixels.size == expected)
        #expect(areClose(TestImages.quarters(of: pixels), TestImages.colors), "frame \(index)")
      }
      let first = try ImageDecoder {
        $0.size = size
        $0.firstFrameOnly = true
      }.decode(file)
      #expect(areClose(TestImages.quarters(of: first.pixels), TestImages.colors))
    }
  }
}
#endif
