internal import CacheCore
internal import HTTPTypes

/// A URI reference and its resolution (RFC 3986 §4.1, §5.2), for `Location` and `Content-Location`. Any text can be parsed.
struct URIReference {
  private var scheme: String?
  private var authority: String?
  private var path: String
  private var query: String?

  init(_ text: String) {
    // Searches bytes: a combining mark after a delimiter would hide it from a search for characters.
    var rest = text[...].utf8.trimmingBlanks()
    rest = rest.prefix { $0 != UInt8(ascii: "#") }
    if let mark = rest.firstIndex(of: UInt8(ascii: "?")) {
      query = Self.text(rest[rest.index(after: mark)...])
      rest = rest[..<mark]
    }
    if let colon = rest.firstIndex(of: UInt8(ascii: ":")), Self.isScheme(rest[..<colon]) {
      scheme = Self.text(rest[..<colon])
      rest = rest[rest.index(after: colon)...]
    }
    if rest.starts(with: "//".utf8) {
      rest = rest.dropFirst(2)
      let slash = rest.firstIndex(of: UInt8(ascii: "/")) ?? rest.endIndex
      authority = Self.text(rest[..<slash])
      rest = rest[slash...]
    }
    path = Self.text(rest)
  }

  private static func text(_ bytes: Substring.UTF8View) -> String { String(Substring(bytes)) }

  /// Returns the target of the reference relative to a request, or `nil` if the request has no absolute URI.
  func resolved(against base: HTTPRequest) -> HTTPRequest? {
    guard let baseScheme = base.scheme, let baseAuthority = base.authority else { return nil }
    let basePath = base.path ?? "/"
    let baseEnd = basePath.utf8.firstIndex(of: UInt8(ascii: "?")) ?? basePath.endIndex
    var target = (path: path, query: query)
    if scheme == nil, authority == nil {
      if path.isEmpty {
        target.path = String(basePath[..<baseEnd])
        if query == nil, baseEnd != basePath.endIndex { target.query = String(basePath[basePath.index(after: baseEnd)...]) }
      } else if path.utf8.first != UInt8(ascii: "/") {
        let folder = basePath[..<baseEnd].utf8.lastIndex(of: UInt8(ascii: "/")).map { String(basePath[...$0]) } ?? "/"
        target.path = folder + path
      }
    }
    let path = Self.withoutDotSegments(target.path) + (target.query.map { "?\($0)" } ?? "")
    return HTTPRequest(
      method: .get, scheme: scheme ?? baseScheme, authority: authority ?? (scheme == nil ? baseAuthority : ""),
      path: path.utf8.first == UInt8(ascii: "/") ? path : "/\(path)")
  }

  /// Returns the path without dot segments (RFC 3986 §5.2.4).
  private static func withoutDotSegments(_ path: String) -> String {
    var kept: [Substring] = []
    let segments = path.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).map { Substring($0) }
    for (index, segment) in segments.enumerated() {
      let isLast = index == segments.count - 1
      switch segment {
      case ".": if isLast { kept.append("") }
      case "..":
        if kept.count > 1 { kept.removeLast() }
        if isLast { kept.append("") }
      default: kept.append(segment)
      }
    }
    return kept.joined(separator: "/")
  }

  private static func isScheme(_ text: Substring.UTF8View) -> Bool {
    guard let first = text.first, isLetter(first) else { return false }
    return text.allSatisfy { byte in
      isLetter(byte) || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || [0x2B, 0x2D, 0x2E].contains(byte)
    }
  }

  private static func isLetter(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
  }
}
