#if canImport(ImageIO) || VIPS
import CacheCore
import ImageFiles
import Testing

@testable import ImageCodecs

@Suite("Color profiles")
struct ProfileTests {
  private func png(_ profile: ICCFile, depth: UInt8, _ pixel: [UInt8]) -> PNGFile {
    let row = [[UInt8]](repeating: pixel, count: 8).flatMap { $0 }
    let channels = pixel.count / Int(depth / 8)
    let chunk: [UInt8] = Array("made\0".utf8) + [0] + PNGFile.zlib(profile.bytes)
    return PNGFile(
      width: 8, height: 8, depth: depth, colorType: [1: 0, 2: 4, 3: 2, 4: 6][channels] ?? 0,
      rows: Array(repeating: row, count: 8),
      chunks: [("iCCP", chunk)])
  }

  @Test("a profile is applied without changing alpha, with 8 and 16 bits, in any size")
  func alpha() throws {
    let cases: [(PNGFile, RGBA)] = [
      (png(.swapped, depth: 8, [255, 0, 0, 128]), RGBA(0, 255, 0, 128)),
      (png(.swapped, depth: 16, [255, 255, 0, 0, 0, 0, 0x80, 0x80]), RGBA(0, 255, 0, 128)),
      (png(.swapped, depth: 16, [255, 255, 0, 0, 0, 0, 0x10, 0x10]), RGBA(0, 255, 0, 16)),
      (png(.swapped, depth: 16, [255, 255, 0, 0, 0, 0]), RGBA(0, 255, 0)),
      (png(.swapped, depth: 16, [0, 0, 0, 0, 0xFF, 0xFF, 0, 0]), RGBA(0, 0, 255, 0)),
      (png(.gray, depth: 8, [128, 77]), RGBA(128, 128, 128, 77)),
      (png(.gray, depth: 16, [0x80, 0x80, 77, 77]), RGBA(128, 128, 128, 77)),
    ]
    for (file, expected) in cases {
      for size in [nil, ImageSizing.fit(4, 4)] {
        let image = try ImageDecoder(size: size).decode(file.data)
        #expect(image.colorSpace == "made")
        let pixel = image.pixels[2, 2]
        #expect(pixel.alpha == expected.alpha, "\(file.depth) bits, \(image.size): \(pixel)")
        if expected.alpha > 0 { #expect(isClose(pixel, expected, within: 20), "\(file.depth) bits, \(image.size): \(pixel)") }
      }
    }
  }

  @Test("with the profile of an encoded gray image, it has the same shades", arguments: [1, 2] as [Int])
  func encodedGray(channels: Int) throws {
    let row: [UInt8] = (UInt8.min...UInt8.max).flatMap { shade -> [UInt8] in channels == 2 ? [shade, 200] : [shade] }
    let chunk: [UInt8] = Array("gray".utf8) + [0, 0] + PNGFile.zlib(ICCProfile.gray)
    let file = PNGFile(
      width: 256, height: 1, depth: 8, colorType: channels == 2 ? 4 : 0, rows: [row], chunks: [("iCCP", chunk)])
    let image = try ImageDecoder().decode(file.data)
    #expect(image.colorSpace == "sRGB gray")
    for shade in UInt8.min...UInt8.max {
      let expected = RGBA(shade, shade, shade, channels == 2 ? 200 : 255)
      #expect(isClose(image.pixels[Int(shade), 0], expected, within: 1))
    }
  }

  @Test(
    "a profile for other channels than the image's is ignored, as in browsers",
    .enabled(if: !TestImages.usesImageIO, "ImageIO writes a profile of its own"))
  func otherColors() throws {
    let gray = try ImageEncoder(.jpeg, quality: 95).encode(ImageProcessor.gray.process(TestImages.quarters()))
    let colors = try ImageEncoder(.jpeg, quality: 95).encode(TestImages.quarters())
    let plain = try ImageDecoder().decode(gray).pixels[3, 3]
    for size in [nil, ImageSizing.fit(32, 32)] {
      let image = try ImageDecoder(size: size).decode(TestImages.profiled(gray, ICCFile.swapped.bytes))
      #expect(isClose(image.pixels[3, 3], plain, within: 2))
      #expect(image.colorSpace == "grey")
      let second = try ImageDecoder(size: size).decode(TestImages.profiled(colors, ICCFile.gray.bytes))
      #expect(areClose(TestImages.quarters(of: second.pixels), TestImages.colors))
    }
  }

  @Test("a truncated profile is an error, or ignored if partial images are allowed")
  func cut() throws {
    let profile = ICCFile().bytes
    let file = try ImageEncoder(.jpeg, quality: 95).encode(TestImages.quarters())
    for length in stride(from: 1, to: profile.count, by: 10) {
      let cut = TestImages.profiled(file, Array(profile.prefix(length)))
      do throws(CacheError) {
        #expect(areClose(TestImages.quarters(of: try ImageDecoder().decode(cut).pixels), TestImages.colors), "\(length)")
      } catch {
        #expect(error.code == .decodingFailed, "\(length)")
      }
    }
  }
}
#endif
