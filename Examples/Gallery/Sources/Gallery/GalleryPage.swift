import CacheCore
import Foundation
import GatewayServer
import HTTPTypes

/// The page: three static documents. The HTML document has a tile for each image.
enum GalleryPage {
  /// Returns the document at a path, or `nil` if there is none.
  static func document(at path: String) -> ProxyAnswer? {
    switch path {
    case "/": page
    case "/gallery.css": styles
    case "/gallery.js": script
    default: nil
    }
  }

  private static let page = answer(
    Data(
      String(decoding: PackageResources.gallery_html, as: UTF8.self)
        .replacing("<!-- tiles -->", with: GalleryImage.all.map(tile).joined(separator: "\n")).utf8), "text/html")
  private static let styles = answer(Data(PackageResources.gallery_css), "text/css")
  private static let script = answer(Data(PackageResources.gallery_js), "text/javascript")

  /// Returns the HTML of a tile before its first load.
  private static func tile(_ image: GalleryImage) -> String {
    """
    <li class="tile\(image.isLarge ? " large" : "")" data-path="\(image.path)" data-title="\(image.landscape.motif.rawValue)">
    <div class="frame"><img alt="\(image.landscape.motif.rawValue), not loaded yet" width="400" height="300" hidden><span class="version"></span></div>
    <p class="source">–</p>
    <p class="facts">not loaded yet</p>
    <p class="status"></p>
    </li>
    """
  }

  private static func answer(_ data: Data, _ type: String) -> ProxyAnswer {
    var fields: HTTPFields = [.contentType: "\(type); charset=utf-8", .cacheControl: "no-store"]
    let sources = ["default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "img-src blob: data:"]
    for (name, value) in [
      ("Content-Security-Policy", sources.joined(separator: "; ")),
      ("X-Content-Type-Options", "nosniff"),
      // An isolated page may measure time in steps of 5 µs. Otherwise they are 100 µs, which is as long as a hit takes.
      ("Cross-Origin-Opener-Policy", "same-origin"), ("Cross-Origin-Embedder-Policy", "require-corp"),
    ] {
      if let name = HTTPField.Name(name) { fields[name] = value }
    }
    return ProxyAnswer(head: HTTPResponse(status: .ok, headerFields: fields), body: ResourceBody(data), outcome: .local)
  }
}
