#if Service
internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The URLs of a source.
struct OriginPattern: Hashable, Sendable {
  private let scheme: String
  private let host: String
  private let includesSubdomains: Bool
  private let port: Int?
  /// The path of the allowed URLs. Without a slash at the end, the URL itself and URLs below it are allowed.
  private let path: String

  init?(_ text: String) {
    let isWild = text.contains("://*.")
    guard let url = URL(encoding: isWild ? text.replacing("://*.", with: "://") : text), let scheme = url.scheme?.lowercased(),
      scheme == "http" || scheme == "https", let host = url.host().map(HostName.comparable), !host.isEmpty, !host.contains("*"),
      url.user() == nil, url.query() == nil, url.fragment() == nil
    else { return nil }
    (self.scheme, self.host, includesSubdomains) = (scheme, host, isWild)
    port = url.port ?? Self.port(of: scheme)
    let path = url.path(percentEncoded: true)
    self.path = path.isEmpty ? "/" : path
  }

  func matches(_ url: URL) -> Bool {
    guard let scheme = url.scheme?.lowercased(), scheme == self.scheme, let host = url.host().map(HostName.comparable),
      includesSubdomains ? host.hasSuffix(".\(self.host)") : host == self.host, (url.port ?? Self.port(of: scheme)) == port,
      // A name before the host makes a URL look like one of another host.
      url.user() == nil, url.password() == nil
    else { return false }
    let path = url.path(percentEncoded: true)
    guard !SourceReference.leavesFolder(path) else { return false }
    if self.path.hasSuffix("/") { return path.hasPrefix(self.path) || (self.path == "/" && path.isEmpty) }
    return path == self.path || path.hasPrefix("\(self.path)/")
  }

  private static func port(of scheme: String) -> Int? { scheme == "https" ? 443 : 80 }
}

/// The source of an image in the URL of a request: a URL, or a file in a named folder.
///
/// A file has a URL too, because caches and purges work with URLs. Its host, `NAME.folder.invalid`, cannot exist (RFC 6761 §6.4).
struct SourceReference: Sendable {
  private static let folderSuffix = ".folder.invalid"

  /// The URL, whose host is in ASCII and has no escapes.
  let url: URL
  let request: HTTPRequest

  /// - Throws: `CacheError.Code.invalidURL` if the text is neither a URL nor a name and a path.
  init(_ text: String) throws(CacheError) {
    // The search for "://" in the whole text would take longer than everything else.
    let isURL = text.utf8.prefix { $0 != UInt8(ascii: "/") }.last == UInt8(ascii: ":")
    request = try HTTPRequest(resource: isURL ? Self.url(of: text) : Self.file(text))
    guard let url = request.absoluteURL, isURL != Self.isFile(url) else { throw Self.notURL }
    self.url = url
  }

  private static let notURL = CacheError(.invalidURL, reason: "the source is not an http or https URL")

  private static func url(of text: String) throws(CacheError) -> URL {
    guard let url = URL(encoding: text), let scheme = url.scheme?.lowercased(), scheme == "http" || scheme == "https",
      let host = url.host(), !host.isEmpty, url.fragment() == nil, url.user() == nil
    else { throw notURL }
    return url
  }

  private static func file(_ text: String) throws(CacheError) -> URL {
    let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, isFolderName(parts[0]), !parts[1].isEmpty, !text.utf8.contains(0),
      !leavesFolder(String(parts[1])), !isHidden(String(parts[1])),
      let url = URL(string: "http://\(parts[0].lowercased())\(folderSuffix)/\(String(parts[1]).percentEncoded(leaving: "/"))")
    else { throw CacheError(.invalidURL, reason: "the source is neither a URL nor the name of a folder and a path in it") }
    return url
  }

  /// Whether the text consists of ASCII letters, digits and hyphens. Other letters would be several spellings of one host (IDNA).
  static func isFolderName(_ text: some StringProtocol) -> Bool {
    !text.isEmpty
      && text.utf8.allSatisfy { byte in
        (48...57).contains(byte) || (97...122).contains(byte | 0x20) || byte == UInt8(ascii: "-")
      }
  }

  /// Returns the name of the folder that a URL names, in lower case, or `nil` for the URL of an origin.
  ///
  /// A host has many spellings: escapes, capital letters, other dots and letters (IDNA), dots at the end. They are resolved here
  /// and nowhere else.
  static func folder(of url: URL) -> String? {
    guard let host = url.host() else { return nil }
    var name = HostName.comparable(host)[...]
    while name.utf8.last == UInt8(ascii: ".") { name.removeLast() }
    return name.hasSuffix(folderSuffix) ? String(name.dropLast(folderSuffix.utf8.count)) : nil
  }

  /// Returns the text that names a source in a path.
  static func text(of url: URL) -> String {
    folder(of: url).map { "\($0)\(url.path(percentEncoded: false))" } ?? url.absoluteString
  }

  /// Whether the URL is that of a file in a named folder.
  static func isFile(_ url: URL) -> Bool { folder(of: url) != nil }

  // Paths are split by bytes. As a character, a slash or a period can be one with an accent, and a file system sees bytes.

  /// Whether a segment of the path begins with a period.
  static func isHidden(_ path: String) -> Bool {
    path.utf8.split(separator: UInt8(ascii: "/")).contains { $0.first == UInt8(ascii: ".") }
  }

  /// Whether a segment of the path is `..`. Some servers decode a path before they split it, or accept a backslash.
  static func leavesFolder(_ path: String) -> Bool {
    HostName.percentDecodedBytes(path[...]).bytes.split { "/\\;".utf8.contains($0) }.contains { $0.elementsEqual("..".utf8) }
  }
}
#endif
