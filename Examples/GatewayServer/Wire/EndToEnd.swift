#if Gateway
import HTTPTypes

extension HTTPFields {
  /// What goes on to the other side: everything but the fields about one connection (RFC 9110 §7.6.1, §11.7) and those that
  /// `Connection` names, in the same order.
  ///
  /// - Parameter isDropped: told of names in lower case; those for which it says yes stay behind too.
  func endToEnd(without isDropped: (String) -> Bool = { _ in false }) -> HTTPFields {
    let named = namedByConnection
    // There are few to take out, and to take them out costs less than to put all others together again.
    var fields = self
    for field in self {
      let name = field.name.canonicalName
      if Self.isHopByHop(name) || isDropped(name) || named.contains(name) { fields[field.name] = nil }
    }
    return fields
  }

  /// In lower case. The usual members, which name no field that could be passed on, are left out.
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

  /// Told apart by length first: every field of every message is looked up here.
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
