#if VIPS && os(Linux)
import CacheCore
import ImageCodecs
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The images in `Modules/Images/ImageCodecs/ImageCodecs.docc/Resources` are made from the first of them by the processors.
/// With `ETAGERE_DRAW=1` in the environment, the test writes them.
@Suite("The images of processors in the documentation")
struct DocumentedProcessorTests {
  struct Shown: Sendable, CustomStringConvertible {
    let name: String
    let processor: ImageProcessor
    /// The permitted average deviation per channel: 0 for steps that this module computes.
    var tolerance = 0.0
    var isOpinion = false

    var description: String { name }
  }

  static let shown = [
    Shown(name: "original", processor: .none),
    Shown(name: "resize-fit", processor: .resize(.fit(100, 100)), tolerance: 3),
    Shown(name: "resize-exact", processor: .resize(.exact(100, 100)), tolerance: 3),
    Shown(name: "resize-max-pixels", processor: .resize(.maxPixels(4_800)), tolerance: 3),
    Shown(name: "fill", processor: .fill(100, 100), tolerance: 3),
    Shown(name: "crop-top-right", processor: .crop(100, 100, anchor: .topRight)),
    Shown(name: "crop-attention", processor: .crop(attention: 80, 80), isOpinion: true),
    Shown(name: "rotate", processor: .rotate(quarterTurns: 1)),
    Shown(name: "flip", processor: .flipHorizontally),
    Shown(name: "round-corners", processor: .roundCorners(radius: 24)),
    Shown(name: "circle", processor: .crop(120, 120) + .circle),
    Shown(name: "border", processor: .border(width: 6, color: RGBA(20, 40, 90), radius: 16)),
    Shown(name: "blur", processor: .blur(sigma: 4)),
    Shown(name: "tint", processor: .tint(RGBA(200, 60, 20), amount: 0.4)),
    Shown(name: "gray", processor: .gray),
    Shown(name: "custom", processor: .custom("negative") { pixels throws(CacheError) in try Self.negative(pixels) }),
    Shown(name: "composed", processor: .fill(100, 100) + .gray + .circle, tolerance: 3),
  ]

  private static let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(
    path: "../../../Modules/Images/ImageCodecs/ImageCodecs.docc/Resources"
  )
  .standardized

  @Test("each image equals the processor's result", arguments: shown)
  func images(_ shown: Shown) throws {
    // Given
    let file = Self.folder.appending(path: shown.name + ".png")
    if ProcessInfo.processInfo.environment["ETAGERE_DRAW"] == "1" { try Self.draw(shown, file) }

    // When
    let made = try shown.processor.process(Self.scene())
    let kept = try ImageDecoder().decode(Data(contentsOf: file))

    // Then
    #expect(made.size == kept.size)
    guard !shown.isOpinion, made.size == kept.size else { return }
    let (mine, its) = (try made.pixels.widened().bytes, try kept.pixels.widened().bytes)
    let off = zip(mine, its).reduce(0) { $0 + abs(Int($1.0) - Int($1.1)) }
    #expect(Double(off) / Double(its.count) <= shown.tolerance)
  }

  @Test("the images differ")
  func distinct() throws {
    let files = try Self.shown.map { try Data(contentsOf: Self.folder.appending(path: $0.name + ".png")) }
    #expect(Set(files).count == files.count)
    #expect(files.allSatisfy { $0.count < 20_000 })
  }

  private static func draw(_ shown: Shown, _ file: URL) throws {
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    try ImageEncoder(.png).encode(shown.processor.process(scene())).write(to: file)
  }

  /// A house on a hill with the sun at the upper right, so that all directions can be distinguished.
  private static func scene() throws -> DecodedImage {
    let size = PixelSize(160, 120)
    let pixels = PixelBuffer(size: size, channels: .rgb) { bytes in
      for y in 0..<size.height {
        for x in 0..<size.width {
          let color = color(x, y)
          let place = (y * size.width + x) * 3
          (bytes[place], bytes[place + 1], bytes[place + 2]) = (color.red, color.green, color.blue)
        }
      }
    }
    return DecodedImage(try #require(pixels))
  }

  private static func color(_ x: Int, _ y: Int) -> RGBA {
    let (sunX, sunY) = (x - 126, y - 28)
    let isHouse = (36..<76).contains(x) && (58..<92).contains(y)
    let isDoor = (52..<62).contains(x) && (74..<92).contains(y)
    let isRoof = (38..<58).contains(y) && abs(x - 56) <= (y - 36) * 5 / 4
    let hill = 84 + (x - 60) * (x - 60) / 400
    if isDoor { return RGBA(92, 56, 30) }
    if isHouse { return RGBA(236, 222, 196) }
    if isRoof { return RGBA(178, 62, 48) }
    if y >= hill { return RGBA(70, UInt8(150 - (y - hill)), 74) }
    if sunX * sunX + sunY * sunY < 256 { return RGBA(255, 214, 92) }
    return RGBA(UInt8(96 + y), UInt8(160 + y / 2), 235)
  }

  private static func negative(_ pixels: PixelBuffer) throws(CacheError) -> PixelBuffer {
    let bytes = pixels.bytes
    let turned = PixelBuffer(size: pixels.size, channels: pixels.channels) { target in
      for index in bytes.indices { target[index] = 255 - bytes[index] }
    }
    guard let turned else { throw CacheError(.other, reason: "not enough memory for \(pixels.size) pixels") }
    return turned
  }
}
#endif
