#if Demo
import Etagere
import Foundation
import LoopbackOrigin

/// The images of the origin of the image demo: drawn scenes in the formats in turn.
struct ImageDemoContent: Sendable {
  struct Item: Sendable {
    var scene: DrawnScene
    var encoder: ImageEncoder
    var body = Data()

    var path: String { "/image-\(scene.number + 1).\(encoder.format.fileExtension)" }
    var etag: OriginETag { .strong("image-\(scene.number + 1)-\(scene.isEvening ? "evening" : "day")") }

    mutating func draw() throws(CacheError) {
      body = try encoder.encode(DecodedImage(scene.pixels(ImageDemoContent.size)))
    }
  }

  static let size = PixelSize(1200, 900)
  static let count = 12
  /// The formats of the images. ImageIO does not write WebP.
  static let formats = [ImageFormat.jpeg, .png, .webp].filter(ImageEncoder.isWritten)
  /// The lifetime of a fresh response.
  static let lifetime = Duration.seconds(3_600)

  private(set) var items: [Item]

  init() throws(CacheError) {
    items = []
    for number in 0..<Self.count {
      let format = Self.formats[number % Self.formats.count]
      var item = Item(scene: DrawnScene(number: number), encoder: ImageEncoder(format, quality: 85))
      try item.draw()
      items.append(item)
    }
  }

  /// Replaces every third image by another one with the same URL.
  ///
  /// - Returns: The indices of the replaced images.
  mutating func change() throws(CacheError) -> Set<Int> {
    let changed = Set(items.indices.filter { $0 % 3 == 1 })
    for index in changed {
      items[index].scene.isEvening = true
      try items[index].draw()
    }
    return changed
  }

  func publish(on origin: OriginServer) {
    for item in items {
      origin.setRoute(
        item.path,
        Route(
          item.body, contentType: item.encoder.format.mediaType, etag: item.etag,
          fields: [.cacheControl: "max-age=\(Int(Self.lifetime / .seconds(1)))"]))
    }
  }
}

/// A drawn image of a sky, a sun and two rows of hills. It depends only on its number, in every run and on every platform.
struct DrawnScene: Sendable {
  var number: Int
  /// Whether the scene is shown in the evening.
  var isEvening = false

  func pixels(_ size: PixelSize) throws(CacheError) -> PixelBuffer {
    let (width, height) = (size.width, size.height)
    let hue = Double(number) / 12
    let (top, bottom) =
      isEvening ? (Self.color(0.72, 0.35), Self.color(0.02 + hue * 0.1, 0.95)) : (Self.color(hue, 0.8), Self.color(hue + 0.1, 1))
    let near = isEvening ? RGBA(18, 14, 40) : Self.color(hue + 0.45, 0.45)
    let far = isEvening ? RGBA(52, 30, 78) : Self.color(hue + 0.5, 0.65)
    let sun = isEvening ? RGBA(255, 120, 60) : RGBA(255, 244, 200)
    let (sunX, sunY) = (width * (3 + number % 7) / 12, height * (isEvening ? 7 : 3) / 12)
    let radius = height / 9
    let farHills = hills(width, height, at: 0.62, waves: 2 + number % 3)
    let nearHills = hills(width, height, at: 0.78, waves: 3 + number % 4)
    let drawn = PixelBuffer(size: size, channels: .rgb) { bytes in
      var place = 0
      for y in 0..<height {
        let sky = Self.mix(top, bottom, y, height)
        for x in 0..<width {
          let (right, down) = (x - sunX, y - sunY)
          let isSun = right * right + down * down < radius * radius
          let color = y > nearHills[x] ? near : y > farHills[x] ? far : isSun ? sun : sky
          bytes[place] = color.red
          bytes[place + 1] = color.green
          bytes[place + 2] = color.blue
          place += 3
        }
      }
    }
    guard let drawn else { throw CacheError(.other, reason: "not enough memory for an image of \(size) pixels") }
    return drawn
  }

  /// Returns the top of the hills in each column.
  private func hills(_ width: Int, _ height: Int, at level: Double, waves: Int) -> [Int] {
    (0..<width).map { x in
      let place = Double(x) / Double(width) * .pi * Double(waves) + Double(number)
      return Int((level + sin(place) * 0.05 + sin(place * 2.3) * 0.03) * Double(height))
    }
  }

  private static func mix(_ first: RGBA, _ second: RGBA, _ part: Int, _ whole: Int) -> RGBA {
    func channel(_ first: UInt8, _ second: UInt8) -> UInt8 {
      UInt8((Int(first) * (whole - part) + Int(second) * part) / max(whole, 1))
    }
    return RGBA(channel(first.red, second.red), channel(first.green, second.green), channel(first.blue, second.blue))
  }

  /// Returns the color of a hue from 0 to 1, slightly desaturated.
  private static func color(_ hue: Double, _ value: Double) -> RGBA {
    func channel(_ offset: Double) -> UInt8 {
      let wave = 0.5 + 0.5 * cos((hue - offset) * 2 * .pi)
      return UInt8((0.25 + 0.75 * wave) * value * 255)
    }
    return RGBA(channel(0), channel(1.0 / 3), channel(2.0 / 3))
  }
}
#endif
