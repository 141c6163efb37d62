#if Tool
import Etagere
import Foundation
import LoopbackOrigin

/// The resources of the demo's origin. The bodies are the same in every run and cannot be compressed.
struct DemoContent {
  struct Item: Sendable {
    var path: String
    var body: Data
    var version: Int

    var etag: OriginETag { .strong("\(path.dropFirst())-\(version)") }
  }

  /// The lifetime of a fresh response.
  static let lifetime = Duration.seconds(60)

  var sprites: [Item]
  var photographs: [Item]

  init() {
    // The sizes of small icons.
    sprites = (0..<56).map { index in
      Item(path: "/sprite-\(index + 1).png", body: Self.bytes(500 + index * 700 / 55, seed: UInt64(index)), version: 1)
    }
    photographs = [60_000, 150_000, 555_000].enumerated().map { index, size in
      Item(path: "/photograph-\(index + 1).jpg", body: Self.bytes(size, seed: UInt64(1_000 + index)), version: 1)
    }
  }

  /// Replaces every small resource by one of the same URL and size with other bytes.
  mutating func change() {
    sprites = sprites.enumerated().map { index, item in
      Item(path: item.path, body: Self.bytes(item.body.count, seed: UInt64(10_000 + index)), version: item.version + 1)
    }
  }

  func publish(on origin: OriginServer) {
    for item in sprites + photographs {
      origin.setRoute(
        item.path,
        Route(
          item.body, contentType: item.path.hasSuffix(".png") ? "image/png" : "image/jpeg", etag: item.etag,
          fields: [.cacheControl: "max-age=\(Int(Self.lifetime / .seconds(1)))"]))
    }
  }

  private static func bytes(_ count: Int, seed: UInt64) -> Data {
    var state = seed &* 0x9e37_79b9_7f4a_7c15 | 1
    return Data(
      (0..<count).map { _ in
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
        return UInt8(truncatingIfNeeded: state >> 24)
      })
  }
}
#endif
