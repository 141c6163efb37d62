#if Service
public import HTTPTypes

extension HTTPFields {
  /// Returns the end-to-end fields, in the same order. Fields about one connection (RFC 9110 §7.6.1, §11.7) and fields
  /// that `Connection` names are left out.
  ///
  /// - Parameter isDropped: Returns whether to leave out another field, given its name in lower case.
  public func endToEnd(without isDropped: (String) -> Bool = { _ in false }) -> HTTPFields {
    let named = namedByConnection
    // Removing a few fields costs less than building a new collection of all others.
    var fields = self
    for field in self {
      let name = field.name.canonicalName
      if Self.isHopByHop(name) || isDropped(name) || named.contains(name) { fields[field.name] = nil }
    }
    return fields
  }

  /// The field names in `Connection`, in lower case. The values `keep-alive` and `close` name no field.
  private var namedByConnection: Set<String> {
    var named = Set<String>()
    for field in self where field.name == .connection {
      guard !Self.isUsual(field) else { continue }
      for option in field.value.split(separator: ",") { named.insert(option.trimmingBlanks().lowercased()) }
    }
    return named
  }

  private static func isUsual(_ connection: HTTPField) -> Bool {
    connection.value == "keep-alive" || connection.value == "close"
  }

  /// Compares the length first, because this function runs for every field of every message.
  private static func isHopByHop(_ name: String) -> Bool {
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
#endif
