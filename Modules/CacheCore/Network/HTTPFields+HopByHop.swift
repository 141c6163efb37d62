package import HTTPTypes

extension HTTPFields {
  /// Returns whether a field concerns a single connection (RFC 9110 §7.6.1, §11.7), given its name in lower case.
  ///
  /// Compares the length first, because every field of every message is checked.
  package static func isHopByHop(_ name: String) -> Bool {
    switch name.utf8.count {
    case 2: name == "te"
    case 7: name == "trailer" || name == "upgrade"
    case 10: name == "connection" || name == "keep-alive"
    case 16: name == "proxy-connection"
    case 17: name == "transfer-encoding"
    case 18: name == "proxy-authenticate"
    case 19: name == "proxy-authorization"
    case 25: name == "proxy-authentication-info"
    default: false
    }
  }
}
