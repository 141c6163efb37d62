public import HTTPTypes

#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// The rules for the text of ``CacheKey/resource``.
///
/// The text is the effective URI (RFC 9110 §7.1) or the caller's own key, for example for a presigned URL. A partition (tenant)
/// precedes it. The URI has no fragment and no user information. Its scheme and host are in lower case, and the default port is
/// omitted (RFC 3986 §6.2.2, §6.2.3). An international host is in ASCII (`xn--…`, RFC 5891).
///
/// URIs, keys, partitions and names never collide. Each kind is marked by a control character, which no URI contains, and a
/// partition carries its length.
public enum ResourceID {
  private static let mark = "\u{1F}"

  /// Returns the text for a resource.
  public static func make(uri: String, key: String? = nil, partition: String? = nil) -> String {
    let name = key.map { "\(mark)k\($0)" } ?? uri
    guard let partition, !partition.isEmpty else { return name }
    return "\(mark)p\(partition.utf8.count):\(partition)\(name)"
  }

  /// Returns the text for bytes that are stored under a name, without a request.
  package static func make(name: String) -> String { "\(mark)n\(name)" }

  /// The parts of a resource's text.
  package struct Parts: Hashable, Sendable {
    package enum Kind: Hashable, Sendable {
      /// The effective URI of a request.
      case uri
      /// The caller's own key for a request.
      case key
      /// The name of bytes that no request loaded.
      case name
    }

    /// The partition, or `nil` if there is none.
    package var partition: String?
    /// The URI, the key or the name.
    package var text: String
    package var kind: Kind
  }

  /// Returns the parts of a text that `make` returned.
  package static func parts(of resource: String) -> Parts {
    guard resource.utf8.first == mark.utf8.first else { return Parts(partition: nil, text: resource, kind: .uri) }
    // Compares bytes, not characters: a partition or a key may begin with a combining mark, which would hide the letter after the
    // control character.
    var rest = resource.utf8[...]
    var partition: String?
    if rest.starts(with: "\(mark)p".utf8), let colon = rest.firstIndex(of: UInt8(ascii: ":")),
      let count = Int(Substring(rest[..<colon].dropFirst(2))), count > 0, count < rest[colon...].count
    {
      rest = rest[colon...].dropFirst()
      partition = String(Substring(rest.prefix(count)))
      rest = rest.dropFirst(count)
    }
    let kind: Parts.Kind = rest.starts(with: "\(mark)k".utf8) ? .key : rest.starts(with: "\(mark)n".utf8) ? .name : .uri
    if kind != .uri { rest = rest.dropFirst(2) }
    return Parts(partition: partition, text: String(Substring(rest)), kind: kind)
  }

  /// Returns the text without control characters, for people to read. A partition precedes it as `partition / …`.
  public static func readable(_ resource: String) -> String {
    let parts = parts(of: resource)
    var text = parts.partition.map { "\($0) / " } ?? ""
    text += parts.text
    text.unicodeScalars.removeAll { $0.properties.generalCategory == .control }
    return text
  }

  /// Returns the authority without leading zeros of its port, and without a port that is empty or the scheme's default.
  private static func withPortInNormalForm(_ authority: String, _ scheme: String) -> String {
    let bytes = authority.utf8
    guard let colon = bytes.lastIndex(of: UInt8(ascii: ":")) else { return authority }
    let port = bytes[bytes.index(after: colon)...]
    guard port.allSatisfy({ (48...57).contains($0) }) else { return authority }
    let digits = port.drop { $0 == UInt8(ascii: "0") }
    // No engine loads port 0.
    guard !digits.isEmpty || port.isEmpty else { return authority }
    let standard = scheme == "http" ? "80" : scheme == "https" ? "443" : ""
    if digits.elementsEqual(standard.utf8) || digits.isEmpty { return String(authority[..<colon]) }
    return digits.count == port.count ? authority : String(authority[...colon] + Substring(digits))
  }

  /// Returns the authority with its host in ASCII, so that every spelling of an international host names one resource. A host
  /// without an ASCII form is unchanged, because no engine loads it.
  private static func inASCII(_ authority: String, _ scheme: String) -> String {
    guard scheme == "http" || scheme == "https" else { return authority }
    return (try? HostName.ascii(authority: authority)) ?? authority
  }

  /// Returns the text in lower case. A text that already is in lower case is not copied.
  private static func lowercased(_ text: String) -> String {
    let isLowercase = text.utf8.allSatisfy { $0 < 0x80 && !(UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) }
    return isLowercase ? text : text.lowercased()
  }

  /// Returns the effective URI of a request in normal form, or `nil` if the request has no absolute URI.
  public static func uri(of request: HTTPRequest) -> String? {
    if let scheme = request.scheme, scheme == "http" || scheme == "https", let authority = request.authority,
      isInNormalForm(authority, scheme)
    {
      return uri(scheme, authority[...], request.path ?? "")
    }
    guard let scheme = request.scheme.map(lowercased) else { return nil }
    guard let authority = authority(of: request) else {
      // `file:///a` and `data:…` have no authority.
      return request.path.map { scheme == "data" ? "data:\($0)" : "\(scheme)://\($0)" }
    }
    return uri(scheme, authority[...], request.path ?? "")
  }

  /// Returns the authority of a request in the form of its effective URI, or `nil` if the request has none.
  ///
  /// A proxy forwards this form as `Host`. Otherwise the spelling of one client would decide the response that others get,
  /// because all spellings share one entry of the cache.
  public static func authority(of request: HTTPRequest) -> String? {
    guard let scheme = request.scheme.map(lowercased), let authority = request.authority else { return nil }
    guard !isInNormalForm(authority, scheme) else { return authority }
    let named = lowercased(inASCII(authority, scheme))
    guard !named.isEmpty else { return nil }
    return withPortInNormalForm(HostPort.withoutUserInformation(named), scheme)
  }

  /// Returns whether `text` is the effective URI of a request, usually without building that URI.
  package static func isURI(_ text: String, of request: HTTPRequest) -> Bool {
    guard let scheme = request.scheme, scheme == "http" || scheme == "https", let authority = request.authority,
      isInNormalForm(authority, scheme)
    else { return uri(of: request) == text }
    let path = request.path ?? ""
    var text = text
    return text.withUTF8 { bytes in
      guard let separator = end(of: scheme, in: bytes, from: 0), let start = end(of: "://", in: bytes, from: separator),
        let slash = end(of: authority, in: bytes, from: start)
      else { return false }
      return end(of: path.isEmpty ? "/" : path, in: bytes, from: slash) == bytes.count
    }
  }

  /// Returns the end of a part of a URI that begins at `start`, or `nil` if the bytes there differ.
  ///
  /// Views of a string's bytes are slower by far, and every stored response is compared.
  private static func end(of part: String, in bytes: UnsafeBufferPointer<UInt8>, from start: Int) -> Int? {
    var part = part
    return part.withUTF8 { part in
      guard bytes.count - start >= part.count else { return nil }
      for index in part.indices where bytes[start + index] != part[index] { return nil }
      return start + part.count
    }
  }

  /// Returns whether an authority needs no change, as is usually the case. It must consist of lowercase letters, digits, dots and
  /// hyphens, with a port other than the scheme's default, without leading zeros.
  private static func isInNormalForm(_ authority: String, _ scheme: String) -> Bool {
    var authority = authority
    return authority.withUTF8 { bytes in
      var host = bytes.count
      for (index, byte) in bytes.enumerated() {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"):
          break
        case UInt8(ascii: ":") where host == bytes.count: host = index
        default: return false
        }
      }
      guard host > 0, host < bytes.count else { return host > 0 }
      let port = bytes[(host + 1)...]
      return !port.isEmpty && port.first != UInt8(ascii: "0") && !port.elementsEqual((scheme == "http" ? "80" : "443").utf8)
    }
  }

  private static func uri(_ scheme: String, _ authority: Substring, _ path: String) -> String {
    var uri = ""
    uri.reserveCapacity(scheme.utf8.count + authority.utf8.count + path.utf8.count + 4)
    uri += scheme
    uri += "://"
    uri += authority
    uri += path.isEmpty ? "/" : path
    return uri
  }
}

extension ResourceID {
  /// Returns the text of a URL if it is already the effective URI, as is usually the case. It makes no new text.
  ///
  /// The scheme must be `http` or `https`. The host must consist of lowercase letters, digits, dots and hyphens. The port must
  /// not be the scheme's default. There must be a path, with only bytes that need no encoding. If the result is `nil`, use
  /// ``uri(of:)`` with the URL's request.
  package static func plainURI(of url: URL) -> String? {
    var text = url.absoluteString
    return text.withUTF8(isPlainURI) ? text : nil
  }

  private static func isPlainURI(_ text: UnsafeBufferPointer<UInt8>) -> Bool {
    guard text.count > 8, text[0] == UInt8(ascii: "h"), text[1] == UInt8(ascii: "t"), text[2] == UInt8(ascii: "t"),
      text[3] == UInt8(ascii: "p")
    else { return false }
    let isSecure = text[4] == UInt8(ascii: "s")
    let host = isSecure ? 8 : 7
    guard text[host - 3] == UInt8(ascii: ":"), text[host - 2] == UInt8(ascii: "/"), text[host - 1] == UInt8(ascii: "/") else {
      return false
    }
    var place = host
    while place < text.count, isPlainInHost(text[place]) { place += 1 }
    guard place > host, place < text.count else { return false }
    if text[place] == UInt8(ascii: ":") {
      guard let end = endOfPort(text, from: place + 1, standard: isSecure ? 443 : 80) else { return false }
      place = end
    }
    guard place < text.count, text[place] == UInt8(ascii: "/") else { return false }
    while place < text.count, isPlainInPath(text[place]) { place += 1 }
    return place == text.count
  }

  private static func endOfPort(_ text: UnsafeBufferPointer<UInt8>, from start: Int, standard: Int) -> Int? {
    var (place, port) = (start, 0)
    while place < text.count, (48...57).contains(text[place]), port <= 65_535 {
      port = port * 10 + Int(text[place] - 48)
      place += 1
    }
    // A port in normal form has no leading zero.
    guard (1...65_535).contains(port), port != standard, text[start] != UInt8(ascii: "0") else { return nil }
    return place
  }

  private static func isPlainInHost(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"): true
    default: false
    }
  }

  private static func isPlainInPath(_ byte: UInt8) -> Bool {
    switch byte {
    // The ranges include the slash, the colon, the semicolon, the question mark and the at sign.
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "/")...UInt8(ascii: ";"), UInt8(ascii: "?")...UInt8(ascii: "Z"),
      UInt8(ascii: "="), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"), UInt8(ascii: "&"),
      UInt8(ascii: "+"), UInt8(ascii: ","), UInt8(ascii: "%"):
      true
    default: false
    }
  }
}
