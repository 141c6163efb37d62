#if Gateway
import Foundation
import HTTPTypes
import LoopbackOrigin

/// One image of the wall, as the origin has it now.
struct GalleryImage: Sendable {
  static let count = 36
  /// Every ninth image is too large for the gateway's memory, so that its hits come from the disk.
  static let all = (0..<count).map { GalleryImage(number: $0, version: 1) }

  let number: Int
  var version: Int

  var isLarge: Bool { number % 9 == 0 }
  var path: String { "/images/\(number + 1).svg" }
  var landscape: Landscape { Landscape(number: number, version: version, isLarge: isLarge) }

  /// The response of the origin.
  ///
  /// It says two things about caching. `CDN-Cache-Control` (RFC 9213) is for the gateway, which is a shared cache: an hour, and a
  /// day when the origin can't be reached. `Cache-Control` is for the browser: nothing may be stored. Otherwise the browser's own
  /// cache would answer in the place of the gateway, and the page would show nothing. `s-maxage` would not do: a response with it
  /// must not be served stale (RFC 9111 §5.2.2.10).
  var route: Route {
    var fields: HTTPFields = [.cacheControl: "no-store"]
    if let name = HTTPField.Name("CDN-Cache-Control") { fields[name] = "max-age=3600, stale-if-error=86400" }
    return Route(
      Data(landscape.svg.utf8), contentType: "image/svg+xml", etag: .strong("\(number + 1)-v\(version)"), fields: fields)
  }
}
#endif
