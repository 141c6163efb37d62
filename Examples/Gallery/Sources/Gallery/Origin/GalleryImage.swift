import Foundation
import HTTPTypes
import LoopbackOrigin

/// The current version of one image on the origin.
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
  /// It has two sets of cache directives. `CDN-Cache-Control` (RFC 9213) is for the gateway, which is a shared cache. The
  /// response is fresh for an hour, and may be served for a day if the origin cannot be reached. `Cache-Control` forbids the
  /// browser to store the response. Otherwise the browser's cache would serve it, and the page would show nothing about the
  /// gateway. `s-maxage` is no alternative, because it forbids serving a stale response (RFC 9111 §5.2.2.10).
  var route: Route {
    var fields: HTTPFields = [.cacheControl: "no-store"]
    if let name = HTTPField.Name("CDN-Cache-Control") { fields[name] = "max-age=3600, stale-if-error=86400" }
    return Route(
      Data(landscape.svg.utf8), contentType: "image/svg+xml", etag: .strong("\(number + 1)-v\(version)"), fields: fields)
  }
}
