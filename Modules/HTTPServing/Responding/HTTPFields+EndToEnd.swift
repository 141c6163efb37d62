#if Service
import CacheCore
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
      for option in field.value.split(separator: ",") { named.insert(Substring(option.utf8.trimmingBlanks()).lowercased()) }
    }
    return named
  }

  private static func isUsual(_ connection: HTTPField) -> Bool {
    connection.value == "keep-alive" || connection.value == "close"
  }
}
#endif
