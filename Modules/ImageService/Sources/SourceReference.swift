#if Service
internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The source of an image in the URL of a request: a URL, or a file in a named folder.
///
/// A file has a URL too, because caches and purges work with URLs. Its host, `NAME.folder.invalid`, cannot exist (RFC 6761 §6.4).
struct SourceReference: Sendable {
  static let folderSuffix = ".folder.invalid"

  let url: URL

  /// - Throws: `CacheError.Code.invalidURL` if the text is neither a URL nor a name and a path.
  init(_ text: String) throws(CacheError) {
    self.url = try Self.url(of: text)
  }

  private static func url(of text: String) throws(CacheError) -> URL {
    // The search for "://" in the whole text would take longer than everything else.
    let start = text.utf8.prefix { $0 != UInt8(ascii: "/") }
    if start.last == UInt8(ascii: ":") {
      // A URL with spaces or other characters that URLs cannot have is read as its percent-encoded form.
      guard let url = URL(string: text), let scheme = url.scheme?.lowercased(), scheme == "http" || scheme == "https",
        let host = url.host(), !host.isEmpty, url.fragment() == nil, url.user() == nil, !host.lowercased().hasSuffix(folderSuffix)
      else { throw CacheError(.invalidURL, reason: "the source is not an http or https URL") }
      return url
    }
    let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, !parts[0].isEmpty, !parts[1].isEmpty, !text.utf8.contains(0),
      !leavesFolder(String(parts[1])), !isHidden(String(parts[1])),
      let url = URL(string: "http://\(parts[0].lowercased())\(folderSuffix)/\(String(parts[1]).percentEncoded(leaving: "/"))")
    else { throw CacheError(.invalidURL, reason: "the source is neither a URL nor the name of a folder and a path in it") }
    return url
  }

  /// Whether the URL is that of a file in a named folder.
  static func isFile(_ url: URL) -> Bool { url.host()?.lowercased().hasSuffix(folderSuffix) ?? false }

  var request: HTTPRequest { HTTPRequest(url: url) }

  /// Whether a segment of the path begins with a period.
  static func isHidden(_ path: String) -> Bool { path.split(separator: "/").contains { $0.hasPrefix(".") } }

  /// Whether a segment of the path is `..`. Some servers decode a path before they split it, or accept a backslash.
  static func leavesFolder(_ path: String) -> Bool {
    guard path.utf8.contains(UInt8(ascii: "%")) else { return path.split { "/\\;".contains($0) }.contains("..") }
    let decoded = path.lowercased().replacing("%2e", with: ".").replacing("%2f", with: "/").replacing("%5c", with: "/")
    return decoded.split { "/\\;".contains($0) }.contains("..")
  }
}
#endif
