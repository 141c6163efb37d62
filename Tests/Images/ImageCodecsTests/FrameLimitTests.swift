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

@Suite("The frames of malicious files")
struct FrameLimitTests {
  private func refusal(_ data: Data, _ limit: Int = 2000) -> CacheError? {
    #expect(throws: CacheError.self) { try ImageHeader(of: data, limits: ImageLimits { $0.frames = limit }) }
  }

  @Test(
    "the frames of a WebP are counted before a codec searches for them",
    .enabled(if: TestImages.hasWebP, "ImageIO does not write WebP"))
  func webp() throws {
    let still = try ImageDecoder().decode(PNGFile(width: 1, height: 1, colorType: 2, rows: [[1, 2, 3]]).data)
    let file = try WebPFile(frames: [still], repetitions: 30_000).data()
    let time = threadTime {
      #expect(refusal(file)?.reason == "WebP: the image has 30000 frames, the limit is 2000")
    }
    #expect(time < 5)
    #expect(refusal(file.dropLast(4))?.code == .imageLimitExceeded)
  }

  @Test("the declared and the actual frames of a PNG are counted")
  func png() {
    let said = PNGFile(
      width: 1, height: 1, colorType: 2, rows: [[1, 2, 3]], chunks: [("acTL", PNGFile.number(70_000) + PNGFile.number(0))])
    #expect(refusal(said.data)?.reason == "PNG: the image has 70000 frames, the limit is 2000")
    let control = PNGFile.number(0) + PNGFile.number(1) + PNGFile.number(1) + [UInt8](repeating: 0, count: 14)
    let present = PNGFile(
      width: 1, height: 1, colorType: 2, rows: [[1, 2, 3]], chunks: Array(repeating: ("fcTL", control), count: 3000))
    #expect(refusal(present.data)?.reason == "PNG: the image has 3000 frames, the limit is 2000")
  }

  @Test("the scans of a JPEG are counted")
  func scans() throws {
    var encoder = ImageEncoder(.jpeg)
    encoder.isProgressive = true
    let file = Array(
      TestImages.profiled(try encoder.encode(TestImages.quarters()), Array(repeating: [0xFF, 0xDA], count: 200).flatMap { $0 }))
    let marker = try #require(file.indices.last { file[$0...].starts(with: [0xFF, 0xDA]) })
    let scan = file[marker...].dropLast(2)
    func profiled(_ count: Int) -> Data {
      Data(file.dropLast(2)) + Data(Array(repeating: scan, count: count).joined()) + Data([0xFF, 0xD9])
    }
    #expect(try ImageHeader(of: profiled(50)).frameCount == 1)
    let error = refusal(profiled(500))
    #expect(error?.code == .imageLimitExceeded)
    #expect(error?.reason.hasSuffix(" scans, the limit is 100") == true)
  }

  @Test("malformed blocks, which codecs read differently, do not hide frames of a GIF")
  func gif() throws {
    let whole = GIFFile(frames: Array(repeating: (1, 10), count: 20)).data
    let head = whole.prefix(13 + 12)
    let frames = whole.dropFirst(13 + 12)
    // An extension without a first block, a block of unknown type, an empty comment, a label without a length.
    for malformed: [UInt8] in [
      [0x21, 0xFF, 0, 0], [0x21, 0xF9, 0, 1, 0, 0], [0x00], [0x99], [0x21, 0xFE, 0], [0x21, 0x01, 0],
    ] {
      #expect(refusal(head + Data(malformed) + frames, 19)?.code == .imageLimitExceeded, "\(malformed)")
    }
    #expect(
      try ImageHeader(of: head + Data([0x21, 0xFE, 1, 0x2C, 0]) + frames, limits: ImageLimits { $0.frames = 20 }).frameCount == 20
    )
  }

  @Test("the size of each GIF frame is checked against the limits")
  func gifCanvas() throws {
    var file = Array(GIFFile(frames: [(1, 10), (2, 10)]).data)
    let descriptor = try #require(file.lastIndex(of: 0x2C))
    file.replaceSubrange(descriptor + 5..<descriptor + 9, with: [0x30, 0x75, 0x30, 0x75])
    #expect(refusal(Data(file))?.reason == "GIF: the image has 30000 × 30000 = 900000000 pixels, the limit is 100000000")
  }

  @Test("missing frames are an error, or give a partial image", arguments: [false, true])
  func cut(isSmall: Bool) throws {
    let file = GIFFile(width: 4, height: 4, frames: [(1, 10), (2, 10), (3, 10)]).data
    let decoder = ImageDecoder(size: isSmall ? .fit(2, 2) : nil)
    // The middle of the third frame, its beginning, the middle of the second, its beginning.
    let frame = (file.count - 13 - 12 - 1) / 3
    let first = 13 + 12 + frame
    for length in [file.count - 3, first + frame + 4, first + frame / 2, first + 9] {
      let error = #expect(throws: CacheError.self) { try decoder.decode(file.prefix(length)) }
      #expect(error?.code == .decodingFailed, "\(length)")
      #expect(error?.reason == "GIF: the file is truncated", "\(length)")
      var partial = decoder
      partial.allowsPartial = true
      let image = try partial.decode(file.prefix(length))
      #expect(image.isPartial)
      #expect(image.pixels[1, 1] == RGBA(255, 0, 0))
    }
    #expect(try !decoder.decode(file).isPartial)
    // Only the trailer is missing, after one, two and three frames.
    for (length, count) in [(first, 1), (first + frame, 2), (file.count - 1, 3)] {
      let image = try decoder.decode(file.prefix(length))
      #expect(!image.isPartial && image.frameCount == count, "\(length)")
    }
    // The first frame alone does not depend on the missing ones.
    var still = decoder
    still.firstFrameOnly = true
    #expect(try !still.decode(file.dropLast(3)).isPartial)
  }

  @Test("a truncated animated WebP is an error", .enabled(if: TestImages.hasWebP, "ImageIO does not write WebP"))
  func cutWebP() throws {
    let file = try WebPFile(frames: [TestImages.quarters(), TestImages.quarters()]).data()
    #expect(try ImageDecoder().decode(file).frameCount == 2)
    for length in stride(from: 0, to: file.count, by: 7) {
      #expect(throws: CacheError.self) { try ImageDecoder().decode(file.prefix(length)) }
    }
  }
}
#endif
