#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The ASCII form of host names (IDNA, RFC 5891). DNS, TLS, the `Host` field and cache keys use this form.
///
/// Foundation converts names with ICU. FoundationEssentials cannot do so alone: its URL types call a hook that
/// FoundationInternationalization installs when it is loaded. CacheCore therefore does not link ICU, but converts host names in
/// every program that does.
package enum HostName {
  /// Returns the ASCII form of a host name. An ASCII name or an address in brackets is returned unchanged.
  ///
  /// - Parameter host: The host of an authority (RFC 3986 §3.2.2), without a port. It may be percent-encoded.
  /// - Throws: ``CacheError/Code/invalidURL`` if the name has no ASCII form.
  package static func ascii(_ host: String) throws(CacheError) -> String {
    // The percent sign in an address introduces its zone (RFC 6874).
    guard needsConversion(host), host.utf8.first != UInt8(ascii: "["), IPAddress(host) == nil else { return host }
    guard let name = percentDecoded(host[...]) else {
      throw CacheError(.invalidURL, reason: "the host '\(host)' is not percent-encoded UTF-8")
    }
    // Foundation encodes escapes literally: `ü%2E` becomes `xn--%2e-…`. Decoding that would give another host.
    let isMixed = host.utf8.contains(UInt8(ascii: "%")) && name.lowercased().contains("xn--")
    guard !isMixed, let ascii = converted(name) else { throw refusal(of: name, hasIDNA: converted("ü") != nil) }
    return ascii
  }

  /// Returns an authority whose host is in ASCII. User information and port are unchanged.
  ///
  /// - Throws: ``CacheError/Code/invalidURL`` if the host has no ASCII form.
  package static func ascii(authority: String) throws(CacheError) -> String {
    guard needsConversion(authority) else { return authority }
    let hostAndPort = HostPort.withoutUserInformation(authority)
    guard needsConversion(hostAndPort), hostAndPort.utf8.first != UInt8(ascii: "[") else { return authority }
    let end = hostAndPort.utf8.lastIndex(of: UInt8(ascii: ":")) ?? hostAndPort.endIndex
    let host = try ascii(String(hostAndPort[..<end]))
    // Compares bytes: a combining mark after the `@` is not a separate character.
    return "\(Substring(authority.utf8.dropLast(hostAndPort.utf8.count)))\(host)\(hostAndPort[end...])"
  }

  /// Returns the lowercase ASCII form of a host, for comparisons. A host that cannot be converted is only lowercased.
  package static func comparable(_ host: String) -> String { ((try? ascii(host)) ?? host).lowercased() }

  /// Returns the error for a text that Foundation does not parse as a URL, if the host is the cause.
  package static func refusal(ofURL text: String) -> CacheError? {
    guard let start = text.firstRange(of: "://")?.upperBound else { return nil }
    let authority = text[start...].prefix { !"/?#".contains($0) }
    do throws(CacheError) {
      _ = try ascii(authority: String(authority))
      return nil
    } catch {
      return error
    }
  }

  static func refusal(of name: String, hasIDNA: Bool) -> CacheError {
    let reason =
      hasIDNA
      ? "the host '\(name)' is not a valid international name (IDNA, RFC 5891)"
      : "the host '\(name)' cannot be converted to ASCII: link FoundationInternationalization, or write the host as xn--…"
    return CacheError(.invalidURL, reason: reason)
  }

  /// Decodes percent-encoded UTF-8 (RFC 3986 §2.1). Returns `nil` for an incomplete escape or other bytes.
  package static func percentDecoded(_ text: Substring) -> String? {
    let (bytes, isComplete) = percentDecodedBytes(text)
    return isComplete ? String(validating: bytes, as: UTF8.self) : nil
  }

  /// Decodes percent encoding once. An incomplete escape stays as it is.
  ///
  /// - Returns: The bytes, and whether no escape is incomplete.
  package static func percentDecodedBytes(_ text: Substring) -> (bytes: [UInt8], isComplete: Bool) {
    // Works on bytes, because iterating over characters is a hundred times slower.
    var (rest, bytes, isComplete) = (Array(text.utf8)[...], [UInt8](), true)
    bytes.reserveCapacity(rest.count)
    while let byte = rest.popFirst() {
      if byte != UInt8(ascii: "%") {
        bytes.append(byte)
      } else if rest.count >= 2, let high = rest[rest.startIndex].hexValue, let low = rest[rest.startIndex + 1].hexValue {
        bytes.append(high << 4 | low)
        rest = rest.dropFirst(2)
      } else {
        bytes.append(byte)
        isComplete = false
      }
    }
    return (bytes, isComplete)
  }

  private static func needsConversion(_ text: String) -> Bool {
    text.utf8.contains { $0 >= 0x80 || $0 == UInt8(ascii: "%") }
  }

  /// Returns `nil` if Foundation percent-encoded the name, which means that it could not convert it. It also rejects brackets,
  /// which would turn a name into an address.
  private static func converted(_ name: String) -> String? {
    var components = URLComponents()
    components.scheme = "https"
    components.host = name
    guard let host = components.encodedHost, !needsConversion(host), host.utf8.first != UInt8(ascii: "[") else { return nil }
    return host
  }
}

/// A host with an optional port, as in an authority (RFC 3986 §3.2).
package enum HostPort {
  /// Returns the parts, or `nil` if the port is invalid or the brackets do not match. An IPv6 address without brackets has no
  /// port.
  package static func split(_ text: String) -> (host: String, port: Int?)? {
    if text.hasPrefix("[") {
      guard let end = text.firstIndex(of: "]") else { return nil }
      let host = String(text[text.index(after: text.startIndex)..<end])
      let rest = text[text.index(after: end)...]
      guard !rest.isEmpty else { return (host, nil) }
      guard rest.hasPrefix(":"), let port = port(rest.dropFirst()) else { return nil }
      return (host, port)
    }
    let colons = text.filter { $0 == ":" }.count
    guard colons == 1, let colon = text.firstIndex(of: ":") else { return (text, nil) }
    guard let port = port(text[text.index(after: colon)...]) else { return nil }
    return (String(text[..<colon]), port)
  }

  /// Returns an authority without the user information before its last `@`.
  ///
  /// It searches bytes because every load calls it, and characters are many times slower.
  package static func withoutUserInformation(_ authority: String) -> String {
    var text = authority
    let rest = text.withUTF8 { bytes in
      bytes.lastIndex(of: UInt8(ascii: "@")).map { String(decoding: bytes[($0 + 1)...], as: UTF8.self) }
    }
    return rest ?? authority
  }

  private static func port(_ text: Substring) -> Int? {
    guard !text.isEmpty, text.utf8.allSatisfy({ (48...57).contains($0) }), let port = Int(text) else { return nil }
    return (1...65535).contains(port) ? port : nil
  }
}
