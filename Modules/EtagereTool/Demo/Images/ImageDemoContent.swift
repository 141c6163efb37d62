#if Tool
import Etagere
import Foundation
import LoopbackOrigin

/// The images of the origin of the image demo: drawn scenes, as JPEG, PNG and WebP in turn.
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
  /// The lifetime of a fresh response.
  static let lifetime = Duration.seconds(60)

  private(set) var items: [Item]

  init() throws(CacheError) {
    let encoders = [ImageEncoder(.jpeg, quality: 85), ImageEncoder(.png), ImageEncoder(.webp, quality: 85)]
    items = []
    for number in 0..<Self.count {
      var item = Item(scene: DrawnScene(number: number), encoder: encoders[number % encoders.count])
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
#endif
