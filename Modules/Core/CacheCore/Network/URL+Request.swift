public import HTTPTypes

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension HTTPRequest {
  /// Creates a request for a URL. User information becomes an `Authorization` field (Basic, RFC 7617). The fragment is omitted.
  ///
  /// An international host is converted to its ASCII form (`xn--…`), so that every spelling of a host names the same resource.
  ///
  /// - Throws: ``CacheError/Code/invalidURL`` if the URL is relative, or if the host of an HTTP URL is missing or has no ASCII
  ///   form.
  public init(resource url: URL, method: HTTPRequest.Method = .get, headerFields: HTTPFields = [:]) throws(CacheError) {
    if let uri = ResourceID.plainURI(of: url) {
      self.init(plainURI: uri, method: method, headerFields: headerFields)
    } else {
      try self.init(parsing: url, method: method, headerFields: headerFields)
    }
  }

  /// Creates a request for an effective URI: see ``ResourceID/plainURI(of:)``.
  package init(plainURI uri: String, method: HTTPRequest.Method, headerFields: HTTPFields) {
    var uri = uri
    // Views of a string's bytes are slower by far.
    let (scheme, authority, path) = uri.withUTF8 { bytes in
      let isSecure = bytes[4] == UInt8(ascii: "s")
      let start = isSecure ? 8 : 7
      var end = start
      while end < bytes.count, bytes[end] != UInt8(ascii: "/") { end += 1 }
      func text(_ bytes: Slice<UnsafeBufferPointer<UInt8>>) -> String {
        String(decoding: UnsafeBufferPointer(rebasing: bytes), as: UTF8.self)
      }
      return (isSecure ? "https" : "http", text(bytes[start..<end]), text(bytes[end...]))
    }
    self.init(method: method, scheme: scheme, authority: authority, path: path, headerFields: headerFields)
  }

  /// Creates a request from the parts of a URL, which Foundation parses and copies. ``init(resource:method:headerFields:)``
  /// avoids that if the text of the URL already has the parts in the form in which they are sent.
  package init(parsing url: URL, method: HTTPRequest.Method = .get, headerFields: HTTPFields = [:]) throws(CacheError) {
    guard let scheme = url.scheme?.lowercased(), !scheme.isEmpty else {
      throw CacheError(.invalidURL, reason: "not an absolute URL (no scheme, such as https://)", url: url.address)
    }
    if scheme == "data" {
      let text = url.absoluteString
      let data = text.utf8.dropFirst(5).prefix { $0 != UInt8(ascii: "#") }
      self.init(method: method, scheme: scheme, authority: nil, path: String(Substring(data)), headerFields: headerFields)
      return
    }
    var host = url.host(percentEncoded: true) ?? ""
    if host.isEmpty, scheme == "http" || scheme == "https" {
      throw CacheError(.invalidURL, reason: "the URL has no host", url: url.address)
    }
    if host.utf8.first != UInt8(ascii: "["), host.utf8.contains(UInt8(ascii: ":")) { host = "[\(host)]" }
    // Foundation returns an international host percent-encoded, although the text of the URL has its ASCII form.
    if scheme == "http" || scheme == "https" { host = try Self.asciiHost(host, of: url) }
    var authority = host
    if let port = url.port {
      guard (1...65535).contains(port) else {
        throw CacheError(.invalidURL, reason: "port \(port) does not exist", url: url.address)
      }
      authority += ":\(port)"
    } else if let port = Self.endlessPort(of: url) {
      throw CacheError(.invalidURL, reason: "port \(port) does not exist", url: url.address)
    }
    var path = url.path(percentEncoded: true)
    if path.isEmpty { path = "/" }
    if let query = url.query(percentEncoded: true) { path += "?\(query)" }
    self.init(
      method: method, scheme: scheme, authority: authority.isEmpty ? nil : authority, path: path, headerFields: headerFields)
    if let user = url.user(percentEncoded: false), self.headerFields[.authorization] == nil {
      let password = url.password(percentEncoded: false) ?? ""
      self.headerFields[.authorization] = "Basic \(Data("\(user):\(password)".utf8).base64EncodedString())"
    }
  }

  /// Returns a port that is too large for a number, as which Foundation reports none. The request would go to the scheme's port.
  private static func endlessPort(of url: URL) -> String? {
    let text = url.absoluteString
    guard let start = text.firstRange(of: "://")?.upperBound else { return nil }
    let authority = HostPort.withoutUserInformation(String(text[start...].prefix { !"/?#".contains($0) }))
    guard let colon = authority.lastIndex(of: ":"), !authority.hasSuffix("]") else { return nil }
    let port = authority[authority.index(after: colon)...]
    return port.isEmpty ? nil : String(port.prefix(20))
  }

  private static func asciiHost(_ host: String, of url: URL) throws(CacheError) -> String {
    do throws(CacheError) {
      return try HostName.ascii(host)
    } catch {
      throw error.about(url.address)
    }
  }

  /// Converts an international host in the authority to its ASCII form. Does nothing for schemes other than `http` and `https`.
  ///
  /// - Throws: ``CacheError/Code/invalidURL`` if the host has no ASCII form.
  package mutating func convertHost() throws(CacheError) {
    guard let authority, let scheme = scheme?.lowercased(), scheme == "http" || scheme == "https" else { return }
    let converted = try HostName.ascii(authority: authority)
    if converted != authority { self.authority = converted }
  }

  /// Returns a GET request for the target of a URI reference in a response to this request (RFC 3986 §5.2), or `nil` if either
  /// has no absolute URI.
  package func resolving(_ reference: HTTPField) -> HTTPRequest? {
    // The bytes, because servers also send paths that are not UTF-8.
    let bytes = reference.withUnsafeBytesOfValue { Array($0) }
    guard let url = absoluteURL.flatMap({ URL(encoding: bytes, relativeTo: $0) }) else { return nil }
    // Foundation leaves the dot segments of a reference with an authority.
    return try? HTTPRequest(resource: url.absoluteURL.standardized)
  }

  /// The URL of the request, or `nil` if the request has no scheme, no path or an invalid authority.
  public var absoluteURL: URL? {
    guard let scheme, let path else { return nil }
    if scheme == "data" { return URL(encoding: "data:\(path)") }
    return URL(encoding: "\(scheme)://\(authority ?? "")\(path)")
  }
}

extension URL {
  /// Creates a URL from text that people, lists or servers wrote. Bytes that a URL cannot have are percent-encoded, and existing
  /// escapes stay (RFC 3986 §2.4).
  ///
  /// `URL(string:)` also encodes the escapes of a component with such a byte: `?f[]=a%20b` becomes `?f%5B%5D=a%2520b`, which
  /// names another resource.
  ///
  /// As in browsers (WHATWG URL), spaces and control characters at both ends are dropped. A `%` without two hexadecimal digits
  /// becomes `%25`. An international host becomes its ASCII form. Returns `nil` for any other invalid host, for a backslash
  /// in the authority, which other software takes for a slash, and for text that is empty. In brackets, a zone such as `%eth0`
  /// may have a bare percent sign (RFC 6874 §3), unless two hexadecimal digits follow it: write `%25e0` for the zone `e0`.
  ///
  /// - Parameters:
  ///   - text: A URL, or a reference that is relative to `base` (RFC 3986 §4.1).
  ///   - base: The URL that a relative reference is resolved against.
  package init?(encoding text: String, relativeTo base: URL? = nil) {
    // Nearly all text is valid and is parsed only once.
    if base == nil, let url = URL(string: text, encodingInvalidCharacters: false) {
      self = url
    } else {
      self.init(encoding: Array(text.utf8), relativeTo: base)
    }
  }

  /// Creates a URL from bytes, which need not be UTF-8 in the path, the query and the fragment.
  package init?(encoding bytes: [UInt8], relativeTo base: URL? = nil) {
    guard let text = Self.encoded(bytes[...]), let url = URL(string: text, encodingInvalidCharacters: false) else { return nil }
    guard let base else {
      self = url
      return
    }
    // The text is valid, so it is not encoded again.
    self.init(string: text, relativeTo: base)
  }

  /// Returns a path and a query with the bytes encoded that a URL cannot have. Existing escapes stay.
  package static func encodedTarget(_ target: String) -> String {
    var text: [UInt8] = []
    append(target.utf8, to: &text, in: .query)
    return String(decoding: text, as: UTF8.self)
  }

  /// Returns whether a path and a query have neither escapes nor bytes that have to be encoded, as nearly all have.
  package static func isPlainTarget(_ target: String) -> Bool {
    target.utf8.allSatisfy { isPlain($0) || Part.query.allows($0) }
  }

  /// A part of a URL, and what it allows beside unreserved characters, sub-delimiters and colons (RFC 3986 §3).
  private enum Part {
    case userInformation
    case address
    case path
    /// The query, or the fragment.
    case query

    func allows(_ byte: UInt8) -> Bool {
      switch byte {
      case UInt8(ascii: "/"), UInt8(ascii: "@"): self == .path || self == .query
      case UInt8(ascii: "?"): self == .query
      case UInt8(ascii: "["), UInt8(ascii: "]"): self == .address
      default: false
      }
    }
  }

  /// Splits the text as RFC 3986 (appendix B) does, and encodes each part.
  private static func encoded(_ text: ArraySlice<UInt8>) -> String? {
    var rest = text.drop { $0 <= 0x20 }
    while let last = rest.last, last <= 0x20 { rest.removeLast() }
    func cut(at mark: UInt8) -> ArraySlice<UInt8>? {
      guard let place = rest.firstIndex(of: mark) else { return nil }
      defer { rest = rest[..<place] }
      return rest[(place + 1)...]
    }
    let fragment = cut(at: UInt8(ascii: "#"))
    let query = cut(at: UInt8(ascii: "?"))
    var text: [UInt8] = []
    if let colon = rest.firstIndex(of: UInt8(ascii: ":")), isScheme(rest[..<colon]) {
      text += rest[...colon]
      rest = rest[(colon + 1)...]
    }
    if rest.starts(with: "//".utf8) {
      let authority = rest.dropFirst(2).prefix { $0 != UInt8(ascii: "/") }
      rest = rest[authority.endIndex...]
      guard let authority = encodedAuthority(authority) else { return nil }
      text += "//".utf8
      text += authority
    } else if text.isEmpty, rest.prefix(while: { $0 != UInt8(ascii: "/") }).contains(UInt8(ascii: ":")) {
      // The first segment of a relative path cannot have a colon (RFC 3986 §4.2).
      text += "./".utf8
    }
    append(rest, to: &text, in: .path)
    for (mark, part) in [("?", query), ("#", fragment)] {
      guard let part else { continue }
      text += mark.utf8
      append(part, to: &text, in: .query)
    }
    return String(decoding: text, as: UTF8.self)
  }

  /// Encodes the user information, and converts the host. Other invalid bytes stay, so that the text is not a URL.
  private static func encodedAuthority(_ authority: ArraySlice<UInt8>) -> [UInt8]? {
    // Browsers take a backslash for a slash: "http://a.example\\@b.example/" would have another host here than there.
    guard !authority.contains(UInt8(ascii: "\\")) else { return nil }
    var text: [UInt8] = []
    var host = authority
    if let at = authority.lastIndex(of: UInt8(ascii: "@")) {
      append(authority[..<at], to: &text, in: .userInformation)
      text.append(UInt8(ascii: "@"))
      host = authority[(at + 1)...]
    }
    if host.first == UInt8(ascii: "[") {
      // The zone of an address may have a bare percent sign (RFC 6874 §3).
      append(host, to: &text, in: .address)
    } else if host.contains(where: { $0 >= 0x80 }) {
      guard let name = String(validating: host, as: UTF8.self), let ascii = try? HostName.ascii(authority: name) else {
        return nil
      }
      text += ascii.utf8
    } else {
      text += host
    }
    return text
  }

  /// Appends bytes, of which those are encoded that the part does not allow and that are not part of an escape.
  private static func append(_ bytes: some Collection<UInt8>, to text: inout [UInt8], in part: Part) {
    var rest = bytes[...]
    while let byte = rest.popFirst() {
      if isPlain(byte) || part.allows(byte) || byte == UInt8(ascii: "%") && isEscape(rest.prefix(2)) {
        text.append(byte)
      } else {
        text += byte.percentEncoded
      }
    }
  }

  private static func isEscape(_ digits: some Collection<UInt8>) -> Bool {
    digits.count == 2 && digits.allSatisfy { $0.hexValue != nil }
  }

  /// Returns whether every part allows the byte: an unreserved character, a sub-delimiter or a colon.
  private static func isPlain(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: ";"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "&")...UInt8(ascii: "."), UInt8(ascii: "="), UInt8(ascii: "_"), UInt8(ascii: "~"), UInt8(ascii: "!"),
      UInt8(ascii: "$"):
      true
    default: false
    }
  }

  private static func isScheme(_ text: ArraySlice<UInt8>) -> Bool {
    func isLetter(_ byte: UInt8) -> Bool { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20) }
    guard let first = text.first, isLetter(first) else { return false }
    return text.allSatisfy { isLetter($0) || (48...57).contains($0) || [0x2B, 0x2D, 0x2E].contains($0) }
  }
}

extension HTTPRequest.Method {
  /// The methods whose effect is the same when a request is sent twice (RFC 9110 §9.2.2).
  package static let idempotent: Set<Self> = [.get, .head, .options, .trace, .put, .delete]

  /// Whether a request may be sent again when it is unknown whether the server has received it.
  package var isIdempotent: Bool { Self.idempotent.contains(self) }
}
