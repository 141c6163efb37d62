#if VIPS && os(Linux)
import CacheTesting
import CacheUI
import Foundation
import Testing

/// The image `animation.png` in `Modules/Interfaces/CacheUI/CacheUI.docc/Resources` shows what a model shows every 100 ms. With
/// `ETAGERE_DRAW=1` in the environment, the test writes it.
@MainActor
@Suite("The image of an animation in the documentation")
struct DocumentedAnimationTests {
  private static let file = URL(filePath: #filePath).deletingLastPathComponent()
    .appending(path: "../../../Modules/Interfaces/CacheUI/CacheUI.docc/Resources/animation.png").standardized

  private let animation: AnimationFixture
  private var player: AnimationPlayer { animation.images.model.player }

  init() throws { animation = try AnimationFixture() }

  @Test("the image has a row for playing, one for half the speed, and one for a seek and a pause")
  func rows() async throws {
    // Given
    try await animation.load(Sunrise.gif)
    let view = animation.appear()
    var shown: [DisplayImage] = []
    func keep(_ count: Int = 1) throws {
      let image = try #require(animation.images.model.image)
      shown += Array(repeating: image, count: count)
    }

    // When
    try keep()
    for frame in 1..<8 {
      try await animation.pass(100, then: frame)
      try keep()
    }
    try await animation.pass(100, then: 0)
    player.speed = 0.5
    try keep(2)
    for frame in 1..<4 {
      try await animation.pass(200, then: frame)
      try keep(2)
    }
    player.speed = 1
    player.stop()
    try await animation.shows(0)
    player.play()
    try keep()
    try await animation.pass(100, then: 1)
    try keep()
    player.seek(to: 5)
    try await animation.shows(5)
    try keep()
    try await animation.pass(100, then: 6)
    try keep()
    player.pause()
    try keep(4)
    await animation.disappear(view)

    // Then
    let sheet = try Self.sheet(shown)
    if ProcessInfo.processInfo.environment["ETAGERE_DRAW"] == "1" {
      try FileManager.default.createDirectory(at: Self.file.deletingLastPathComponent(), withIntermediateDirectories: true)
      try ImageEncoder(.png).encode(sheet).write(to: Self.file)
    }
    let kept = try ImageDecoder().decode(Data(contentsOf: Self.file))
    let (made, documented) = (try sheet.pixels.widened().bytes, try kept.pixels.widened().bytes)
    #expect(kept.size == sheet.size && made == documented)
  }

  /// Returns the images in rows of eight, on a transparent ground.
  private static func sheet(_ images: [DisplayImage]) throws -> DecodedImage {
    let (columns, gap) = (8, 4)
    let cell = try #require(images.first).size
    let rows = images.count / columns
    let size = PixelSize(columns * (cell.width + gap) - gap, rows * (cell.height + gap) - gap)
    let pixels = PixelBuffer(size: size) { target in
      target.initializeMemory(as: UInt8.self, repeating: 0)
      for (index, image) in images.enumerated() {
        let (left, top) = (index % columns * (cell.width + gap), index / columns * (cell.height + gap))
        image.withUnsafeBytes { source in
          for y in 0..<cell.height {
            for x in 0..<cell.width {
              let (from, to) = (y * image.bytesPerRow + x * 4, ((top + y) * size.width + left + x) * 4)
              for channel in 0..<3 { target[to + channel] = source[from + 2 - channel] }
              target[to + 3] = 255
            }
          }
        }
      }
    }
    return DecodedImage(try #require(pixels))
  }
}

/// An animation of eight frames of 100 ms, in which the sun rises and sets over a hill.
private enum Sunrise {
  private static let (width, height, frames) = (64, 48, 8)
  /// The sky at four times of the day, the hill, the ground and the sun.
  private static let palette: [(UInt8, UInt8, UInt8)] = [
    (38, 50, 92), (120, 110, 150), (150, 190, 226), (176, 214, 240), (70, 130, 84), (52, 96, 66), (255, 214, 92),
    (255, 244, 200),
  ]

  static let gif: Data = {
    var file = Data("GIF89a".utf8) + [UInt8(width), 0, UInt8(height), 0, 0x92, 0, 0]
    for (red, green, blue) in palette { file += [red, green, blue] }
    file += [0x21, 0xFF, 11] + Data("NETSCAPE2.0".utf8) + [3, 1, 0, 0, 0]
    for frame in 0..<frames {
      file += [0x21, 0xF9, 4, 0, 10, 0, 0, 0, 0x2C, 0, 0, 0, 0, UInt8(width), 0, UInt8(height), 0, 0, 3]
      let codes = pack((0..<width * height).map { color($0 % width, $0 / width, frame) })
      for start in stride(from: 0, to: codes.count, by: 255) {
        let block = codes[start..<min(start + 255, codes.count)]
        file += [UInt8(block.count)] + block
      }
      file += [0]
    }
    return file + [0x3B]
  }()

  private static func color(_ x: Int, _ y: Int, _ frame: Int) -> Int {
    let arc = Double(frame) / Double(frames - 1) * .pi
    let (sunX, sunY) = (32 - Int((cos(arc) * 26).rounded()), 40 - Int((sin(arc) * 30).rounded()))
    let distance = (x - sunX) * (x - sunX) + (y - sunY) * (y - sunY)
    let hill = 34 + (x - 40) * (x - 40) / 120
    if y >= hill + 5 { return 5 }
    if y >= hill { return 4 }
    if distance < 16 { return 7 }
    if distance < 36 { return 6 }
    return min(frame, frames - 1 - frame)
  }

  /// Returns colors as LZW codes without compression: a clear code before each six colors keeps all codes four bits wide.
  private static func pack(_ colors: [Int]) -> [UInt8] {
    var codes: [Int] = []
    for (index, color) in colors.enumerated() {
      if index % 6 == 0 { codes.append(8) }
      codes.append(color)
    }
    codes.append(9)
    if !codes.count.isMultiple(of: 2) { codes.append(0) }
    return stride(from: 0, to: codes.count, by: 2).map { UInt8(codes[$0] | codes[$0 + 1] << 4) }
  }
}
#endif
