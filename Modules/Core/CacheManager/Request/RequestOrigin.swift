internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The request fields that are for one origin only.
enum ConfidentialFields {
  static let credentials: [HTTPField.Name] = [.authorization, .proxyAuthorization, .cookie]
  static let conditions: [HTTPField.Name] = [.ifMatch, .ifNoneMatch, .ifModifiedSince, .ifUnmodifiedSince, .ifRange]
}

extension URL {
  /// Whether scheme, host and port are equal (RFC 6454 §4).
  func isSameOrigin(as other: URL) -> Bool {
    func port(_ url: URL) -> Int { url.port ?? (url.scheme?.lowercased() == "https" ? 443 : 80) }
    func host(_ url: URL) -> String? { url.host().map(HostName.comparable) }
    return scheme?.lowercased() == other.scheme?.lowercased() && host(self) == host(other)
      && port(self) == port(other)
  }
}

extension HTTPRequest {
  /// Whether the target is an absolute `http` or `https` URL that all parsers read alike (RFC 3986 §3). It has no characters to
  /// escape, no user information and no address in brackets. `false` does not mean that the target is invalid.
  var hasPlainTarget: Bool {
    guard let scheme, scheme == "http" || scheme == "https", let authority, let path else { return false }
    return Self.isPlain(authority: authority.utf8) && Self.isPlain(path: path.utf8)
  }

  private static func isPlain(authority: String.UTF8View) -> Bool {
    var (hostCount, port) = (0, Int?.none)
    for byte in authority {
      if let digits = port {
        // A parser of URLs drops leading zeros.
        guard (48...57).contains(byte), digits <= 6_553, digits > 0 || byte > 48 else { return false }
        port = digits * 10 + Int(byte - 48)
      } else if byte == UInt8(ascii: ":") {
        port = 0
      } else {
        guard isLetterOrDigit(byte) || byte == UInt8(ascii: ".") || byte == UInt8(ascii: "-") else { return false }
        hostCount += 1
      }
    }
    return hostCount > 0 && (port.map { (1...65_535).contains($0) } ?? true)
  }

  private static func isPlain(path: String.UTF8View) -> Bool {
    guard path.first == UInt8(ascii: "/") else { return false }
    return path.allSatisfy { byte in
      if isLetterOrDigit(byte) { return true }
      switch byte {
      case UInt8(ascii: "/"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "~"), UInt8(ascii: "?"),
        UInt8(ascii: "="), UInt8(ascii: "&"), UInt8(ascii: "+"), UInt8(ascii: ","), UInt8(ascii: ";"), UInt8(ascii: ":"),
        UInt8(ascii: "@"), UInt8(ascii: "!"), UInt8(ascii: "$"), UInt8(ascii: "*"):
        return true
      default: return false
      }
    }
  }

  private static func isLetterOrDigit(_ byte: UInt8) -> Bool {
    (48...57).contains(byte) || (97...122).contains(byte | 0x20)
  }
}
