#if Gateway
import HTTPTypes

extension HTTPFields {
  /// Fields about one connection, which no intermediary passes on (RFC 9110 §7.6.1, §11.7).
  private static let hopByHop: Set<String> = [
    "connection", "keep-alive", "proxy-authenticate", "proxy-authentication-info", "proxy-authorization",
    "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
  ]

  /// What goes on to the other side: everything but the fields about one connection and those that `Connection` names, in the same order.
  ///
  /// - Parameter dropped: further names, in lower case.
  func endToEnd(without dropped: Set<String> = []) -> HTTPFields {
    var named = Set<String>()
    for value in self[values: .connection] {
      for option in value.split(separator: ",") { named.insert(option.trimmingBlanks().lowercased()) }
    }
    var fields = HTTPFields()
    fields.reserveCapacity(count)
    for field in self {
      let name = field.name.canonicalName
      if !Self.hopByHop.contains(name), !dropped.contains(name), !named.contains(name) { fields.append(field) }
    }
    return fields
  }
}
#endif
