#if canImport(ImageIO) || VIPS
import CacheCore
import CacheTesting
import ImageCodecs
import ImageFiles
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Animated PNGs")
struct AnimatedPNGTests {
  private let red = RGBA(255, 0, 0)
  private let green = RGBA(0, 255, 0)
  private let blue = RGBA(0, 0, 255)
  private let nothing = RGBA(0, 0, 0, 0)

  private func failure(_ data: Data, _ change: (inout ImageDecoder) -> Void = { _ in }) -> CacheError? {
    #expect(throws: CacheError.self) { try ImageDecoder(change).decode(data) }
  }

  @Test("the header contains the frame count, the delays and the loop count")
  func header() throws {
    let file = AnimatedPNGFile(
      frames: [.init(color: red, delay: (1, 2)), .init(color: green, delay: (7, 0)), .init(color: blue, delay: (1, 1000))],
      plays: 3)
    let header = try ImageHeader(of: file.data)
    #expect(header.format == .png && header.frameCount == 3 && header.size == PixelSize(4, 4))
    #expect(header.delays == [.milliseconds(500), .milliseconds(70), .milliseconds(100)])
    #expect(header.loopCount == 3)
    #expect(try ImageHeader(of: AnimatedPNGFile(frames: [.init(color: red), .init(color: blue)]).data).loopCount == nil)
  }

  @Test("frames are decoded on demand in any order")
  func frames() throws {
    let data = AnimatedPNGFile(frames: [.init(color: red), .init(color: green), .init(color: blue)]).data
    let image = try ImageDecoder().decode(data)
    #expect(image.frameCount == 3 && image.original == data && !image.isPartial)
    for index in [0, 1, 2, 0, 2, 2, 1] {
      #expect(try image.pixels(ofFrame: index)[3, 3] == [red, green, blue][index])
    }
  }

  @Test("a default image before the frames is not a frame")
  func still() throws {
    let data = AnimatedPNGFile(frames: [.init(color: green), .init(color: blue)], still: red).data
    let image = try ImageDecoder().decode(data)
    #expect(image.frameCount == 2)
    #expect(image.pixels[0, 0] == green)
    #expect(try image.pixels(ofFrame: 1)[0, 0] == blue)
  }

  @Test("a frame changes only its area, which is then disposed as declared", arguments: [UInt8(0), 1, 2])
  func disposal(_ disposal: UInt8) throws {
    let data = AnimatedPNGFile(frames: [
      .init(color: red), .init(color: green, x: 1, y: 2, width: 2, height: 1, disposal: disposal),
      .init(color: blue, width: 1, height: 1),
    ]).data
    let image = try ImageDecoder().decode(data)
    let second = try image.pixels(ofFrame: 1)
    #expect([second[0, 0], second[1, 2], second[2, 2], second[3, 2], second[1, 3]] == [red, green, green, red, red])
    let third = try image.pixels(ofFrame: 2)
    #expect([third[0, 0], third[1, 0]] == [blue, red])
    #expect([third[1, 2], third[2, 2]] == [[green, nothing, red][Int(disposal)], [green, nothing, red][Int(disposal)]])
    #expect(third[3, 2] == red)
  }

  @Test("frames are checked against the first header, like the limits")
  func secondHeader() throws {
    var data = AnimatedPNGFile(frames: [.init(color: red), .init(color: blue)]).data
    let imageData = try #require(data.firstRange(of: Data("IDAT".utf8)))
    let length = data[imageData.lowerBound - 4..<imageData.lowerBound].reduce(0) { $0 << 8 | Int($1) }
    let side = PNGFile.number(60_000)
    data.insert(contentsOf: PNGFile.chunk("IHDR", side + side + [1, 0, 0, 0, 0]), at: imageData.upperBound + length + 4)
    let image = try ImageDecoder().decode(data)
    #expect(image.size == PixelSize(4, 4) && image.cost < 10_000)
    #expect(try image.pixels(ofFrame: 1)[3, 3] == blue)
  }

  @Test("a first frame with the disposal 'restore' clears its area")
  func firstRestores() throws {
    let data = AnimatedPNGFile(frames: [.init(color: red, disposal: 2), .init(color: blue, width: 1, height: 1)]).data
    let second = try ImageDecoder().decode(data).pixels(ofFrame: 1)
    #expect(second[0, 0] == blue && second[1, 1] == nothing)
  }

  @Test("a frame is blended over the canvas or replaces it")
  func blending() throws {
    let half = RGBA(0, 0, 255, 128)
    let data = AnimatedPNGFile(frames: [
      .init(color: red), .init(color: half, x: 0, width: 1, blending: 1), .init(color: half, x: 1, width: 1, blending: 0),
      .init(color: nothing, x: 2, width: 1, blending: 1), .init(color: half, x: 1, width: 1, blending: 1),
    ]).data
    let image = try ImageDecoder().decode(data)
    let fourth = try image.pixels(ofFrame: 3)
    let expected = [RGBA(127, 0, 128), half, red, red]
    #expect(areClose((0..<4).map { fourth[$0, 0] }, expected, within: TestImages.losslessDistance))
    let last = try image.pixels(ofFrame: 4)[1, 0]
    #expect(isClose(last, RGBA(0, 0, 255, 192), within: TestImages.losslessDistance))
  }

  @Test("all frames have the requested size")
  func sizes() throws {
    let data = AnimatedPNGFile(frames: [.init(color: red), .init(color: green)]).data
    let image = try ImageDecoder(size: .fit(2, 2)).decode(data)
    #expect(image.size == PixelSize(2, 2))
    let second = try image.pixels(ofFrame: 1)
    #expect(second.size == PixelSize(2, 2) && second[1, 1] == green)
  }

  @Test("an animated PNG with one frame, or without an animation, is a still image")
  func one() throws {
    #expect(try ImageDecoder().decode(AnimatedPNGFile(frames: [.init(color: red)]).data).frameCount == 1)
    #expect(try ImageDecoder().decode(AnimatedPNGFile(frames: [], announced: 0, still: blue).data).pixels[0, 0] == blue)
  }

  static let damages: [(name: String, reason: String, file: AnimatedPNGFile)] = {
    let frames = [RGBA(255, 0, 0), RGBA(0, 255, 0), RGBA(0, 0, 255)].map { AnimatedPNGFile.Frame(color: $0) }
    func changed(_ index: Int, _ change: @escaping @Sendable (inout [UInt8]) -> Void) -> AnimatedPNGFile {
      AnimatedPNGFile(frames: frames) { if $0 == index { change(&$2) } }
    }
    func with(_ change: (inout AnimatedPNGFile.Frame) -> Void) -> AnimatedPNGFile {
      var file = AnimatedPNGFile(frames: frames)
      change(&file.frames[1])
      return file
    }
    return [
      ("more frames declared", "declares 4 frames and has 3", AnimatedPNGFile(frames: frames, announced: 4)),
      ("a repeated number", "part 1 of the animation is missing", changed(4) { $0[3] = 0 }),
      ("pixels out of order", "part 2 of the animation is missing", changed(5) { $0[3] = 3 }),
      ("beyond the right edge", "does not fit the image", with { $0.x = 1 }),
      ("beyond the lower edge", "does not fit the image", with { $0.y = 4_000_000_000 }),
      ("without pixels", "does not fit the image", with { $0.width = 0 }),
      ("an unknown disposal", "control chunk is invalid", with { $0.disposal = 3 }),
      ("an unknown blending", "control chunk is invalid", with { $0.blending = 2 }),
      ("a short control chunk", "control chunk is invalid", changed(4) { $0.removeLast() }),
      ("a data chunk too short for its number", "pixel data without a frame", changed(5) { $0 = [0, 0] }),
    ]
  }()

  @Test(
    "damage is an error with a reason, or the intact frames if partial images are allowed", arguments: damages.indices
  )
  func damaged(_ index: Int) throws {
    let (_, reason, file) = Self.damages[index]
    let data = file.data
    let error = failure(data)
    #expect(error?.code == .decodingFailed && error?.reason.contains(reason) == true, "\(String(describing: error))")
    let partial = try ImageDecoder { $0.allowsPartial = true }.decode(data)
    #expect(partial.isPartial && partial.pixels[0, 0] == red)
    let late = #expect(throws: CacheError.self) { try partial.pixels(ofFrame: partial.frameCount - 1) }
    #expect(late?.code == .decodingFailed)
    #expect(try ImageDecoder { $0.firstFrameOnly = true }.decode(data).pixels[0, 0] == red)
  }

  @Test("truncation and flipped bits never trap, and give a complete image or an error")
  func anyDamage() throws {
    let whole = AnimatedPNGFile(frames: [.init(color: red), .init(color: green, x: 1, width: 2), .init(color: blue)]).data
    var random = SplitMix(state: 7)
    for length in 0..<whole.count {
      #expect(throws: CacheError.self, "\(length)") {
        let image = try ImageDecoder().decode(whole.prefix(length))
        for index in 0..<image.frameCount { _ = try image.pixels(ofFrame: index) }
        // Before its animation chunk, a truncated file is a truncated still image.
        if image.frameCount == 1 { throw CacheError(.decodingFailed, reason: "one frame") }
      }
    }
    for _ in 0..<500 {
      var data = whole
      data[Int.random(in: 8..<data.count, using: &random)] ^= 1 << UInt8.random(in: 0..<8, using: &random)
      for isPartial in [false, true] {
        guard let image = try? ImageDecoder({ $0.allowsPartial = isPartial }).decode(data) else { continue }
        for index in 0..<image.frameCount { _ = try? image.pixels(ofFrame: index) }
      }
    }
  }

  @Test("too many frames are refused")
  func limit() {
    let data = AnimatedPNGFile(frames: (0..<5).map { _ in .init(color: red) }).data
    #expect(failure(data) { $0.limits.frames = 4 }?.code == .imageLimitExceeded)
  }
}
#endif
