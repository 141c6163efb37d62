public import HTTPTypes

extension HTTPFields {
  /// Returns the end-to-end fields, in the same order. A proxy, a gateway or a middleware forwards only these (RFC 9110 §7.6.1).
  ///
  /// ```swift
  /// let response = try await manager.respond(to: request)
  /// send(response.head.headerFields.endToEnd())
  /// ```
  ///
  /// It leaves out the fields about one connection (`Connection`, `Keep-Alive`, `TE`, `Trailer`, `Transfer-Encoding`, `Upgrade`,
  /// `Proxy-Connection`), those of the authentication with a proxy (§11.7), and the fields that `Connection` names.
  public func endToEnd() -> HTTPFields { endToEnd(keeping: { _ in false }) }

  /// Returns the end-to-end fields.
  ///
  /// - Parameter isKept: Returns whether a field is kept although `Connection` names it, given its name in lower case.
  package func endToEnd(keeping isKept: (String) -> Bool) -> HTTPFields {
    let named = namedByConnection
    if named.isEmpty { return removing { Self.isHopByHop($0) } }
    return removing { Self.isHopByHop($0) || (named.contains($0) && !isKept($0)) }
  }

  /// The field names in `Connection`, in lower case. The values `keep-alive` and `close` name no field.
  private var namedByConnection: Set<String> {
    var named = Set<String>()
    for position in positions(of: .connection) {
      let value = self[position].value
      if value == "keep-alive" || value == "close" { continue }
      for option in value.split(separator: ",") { named.insert(Substring(option.utf8.trimmingBlanks()).lowercased()) }
    }
    return named
  }

  /// Returns whether a field concerns a single connection (RFC 9110 §7.6.1, §11.7), given its name in lower case.
  ///
  /// Compares the length first, because every field of every message is checked.
  @inlinable
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
