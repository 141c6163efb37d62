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

@Suite("Bad input")
struct BadInputTests {
  private func refusal(_ data: Data, _ decoder: ImageDecoder = ImageDecoder()) -> CacheError? {
    #expect(throws: CacheError.self) { try decoder.decode(data) }
  }

  @Test(
    "a truncated file is an error that names the format, or a partial image",
    arguments: TestImages.written([.jpeg, .png, .webp, .gif]))
  func truncated(format: ImageFormat) throws {
    // Given half of a file
    let row = [[UInt8]](repeating: [255, 0, 0], count: 640).flatMap { $0 }
    let png = PNGFile(width: 640, height: 480, colorType: 2, rows: Array(repeating: row, count: 480)).data
    let whole = format == .png ? png : try ImageEncoder(format, quality: 90).encode(TestImages.quarters(640, 480))
    let half = whole.prefix(whole.count / 2)
    for size in [nil, ImageSizing.fit(100, 100)] {
      // Then
      let error = refusal(half, ImageDecoder(size: size))
      #expect(error?.code == .decodingFailed)
      #expect(error?.reason.hasPrefix("\(format): ") == true)
    }
    // This kind of WebP frame has no rows before its end.
    guard format != .webp else { return }
    let image = try ImageDecoder {
      $0.allowsPartial = true
      $0.size = .fit(100, 100)
    }.decode(half)
    #expect(image.isPartial)
    #expect(image.size == PixelSize(100, 75))
    #expect(isClose(image.pixels[10, 5], RGBA(255, 0, 0)), "\(image.pixels[10, 5])")
  }

  @Test(
    "truncated files and files with changed bytes neither trap nor take long",
    arguments: TestImages.written([.jpeg, .png, .webp, .gif, .tiff]))
  func damaged(format: ImageFormat) throws {
    let file = try ImageEncoder(format).encode(TestImages.quarters(16, 12))
    let decoder = ImageDecoder {
      $0.allowsPartial = true
      $0.limits.pixels = 1_000_000
    }
    for length in stride(from: 0, to: file.count, by: max(file.count / 60, 1)) { _ = try? decoder.decode(file.prefix(length)) }
    var random = SplitMix(state: 1)
    for _ in 0..<200 {
      var damaged = file
      for _ in 0..<3 { damaged[Int.random(in: 0..<file.count, using: &random)] = UInt8.random(in: 0...255, using: &random) }
      _ = try? decoder.decode(damaged)
    }
  }

  @Test("a file with the name of another format is read by its content")
  func wrongName() throws {
    let file = try ImageEncoder(.png).encode(TestImages.quarters())
    #expect(try ImageDecoder().decode(file, url: URL(string: "https://example.com/a.jpg")).format == .png)
  }

  @Test("a file without pixels, or with too many, is refused by its header")
  func absurdSizes() {
    for (width, height) in [(0, 5), (5, 0), (0x7FFF_FFFF, 0x7FFF_FFFF), (60_000, 60_000), (0x8000_0000, 1)] {
      let file = PNGFile(width: width, height: height, colorType: 2, rows: [[1, 2, 3]])
      let error = refusal(file.data)
      #expect(
        error?.code == .decodingFailed || error?.code == .imageLimitExceeded,
        "\(width) × \(height): \(error.map(String.init(describing:)) ?? "")")
    }
    let large = refusal(PNGFile(width: 60_000, height: 60_000, colorType: 2, rows: [[1, 2, 3]]).data)
    #expect(large?.reason == "PNG: the image has 60000 × 60000 = 3600000000 pixels, the limit is 100000000")
  }

  @Test("a file with too many channels is refused by its header")
  func channels() throws {
    func file(_ channels: Int) -> Data {
      TIFFFile(width: 4, height: 3, pixels: (0..<12).map { _ in [200, 100, 50] + Array(repeating: 255, count: channels - 3) })
        .data
    }
    for channels in 3...5 {
      let pixels = try ImageDecoder(size: .fit(2, 2)).decode(file(channels)).pixels
      #expect(isClose(pixels[0, 0], RGBA(200, 100, 50), within: 2), "\(channels)")
    }
    #if VIPS && os(Linux)
    for channels in [6, 800] {
      let error = refusal(file(channels))
      #expect(error?.code == .imageLimitExceeded)
      #expect(error?.reason == "TIFF: a pixel has \(channels) channels, the limit is 5")
    }
    #endif
  }

  @Test("a file that expands to 289 million pixels is refused before a codec reads it")
  func avifBomb() {
    // Given the boxes of an AVIF that declare its size, and nothing else
    func box(_ kind: String, _ content: [UInt8]) -> [UInt8] { PNGFile.number(content.count + 8) + Array(kind.utf8) + content }
    let extent = box("ispe", [0, 0, 0, 0] + PNGFile.number(17_000) + PNGFile.number(17_000))
    let meta = box("meta", [0, 0, 0, 0] + box("iprp", box("ipco", extent)))
    let file = box("ftyp", Array("avif".utf8) + [0, 0, 0, 0] + Array("mif1".utf8)) + meta
    // Then
    let error = refusal(Data(file))
    #expect(error?.code == .imageLimitExceeded)
    #expect(error?.reason == "AVIF: the image has 17000 × 17000 = 289000000 pixels, the limit is 100000000")
    for length in 0..<file.count { _ = refusal(Data(file.prefix(length))) }
  }

  @Test("a file with a hundred thousand frames is refused by its header")
  func manyFrames() {
    let file = GIFFile(frames: Array(repeating: (1, 10), count: 100_000)).data
    let error = refusal(file)
    #expect(error?.code == .imageLimitExceeded)
    #expect(error?.reason == "GIF: the image has 100000 frames, the limit is 2000")
  }

  @Test(
    "an invalid color profile is an error, or sRGB if partial images are allowed",
    .enabled(if: !TestImages.usesImageIO, "ImageIO ignores it"))
  func garbageProfile() throws {
    let jpeg = try ImageEncoder(.jpeg, quality: 95).encode(TestImages.quarters())
    let file = TestImages.profiled(jpeg, (0..<300).map { UInt8(truncatingIfNeeded: $0 &* 7) })
    for size in [nil, ImageSizing.fit(32, 32)] {
      let error = refusal(file, ImageDecoder(size: size))
      #expect(error?.code == .decodingFailed)
      #expect(error?.reason == "JPEG: its color profile is damaged")
      let image = try ImageDecoder {
        $0.allowsPartial = true
        $0.size = size
      }.decode(file)
      #expect(areClose(TestImages.quarters(of: image.pixels), TestImages.colors))
    }
  }

  @Test("a format that the engine cannot read is an error that says so")
  func unread() {
    let bmp = Data(Array("BM".utf8) + [UInt8](repeating: 0, count: 12) + [40] + [UInt8](repeating: 0, count: 60))
    let error = refusal(bmp)
    #if VIPS && os(Linux)
    #expect(error?.code == .unsupported)
    #expect(error?.reason.hasPrefix("BMP: libvips ") == true)
    #endif
    #expect(error != nil)
  }
}
#endif
