package import HTTPTypes

/// The tags with which an origin groups responses for purging: `Cache-Tag`, a list separated by commas, and `Surrogate-Key`, one
/// separated by spaces.
///
/// No RFC defines these fields, but content delivery networks read them. Tags are compared byte by byte.
package struct CacheTags: Hashable, Sendable {
  /// The distinct tags.
  package let names: Set<String>

  /// Creates the set of tags in a response's fields. Empty members are ignored.
  package init(_ fields: HTTPFields) {
    var names: Set<String> = []
    for field in fields {
      let isList: Bool
      switch field.name.canonicalName {
      case "cache-tag": isList = true
      case "surrogate-key": isList = false
      default: continue
      }
      let separator: (UInt8) -> Bool = isList ? { $0 == 0x2C } : { $0 == 0x20 || $0 == 0x09 }
      for member in field.value.utf8.split(whereSeparator: separator) {
        let name = member.trimmingBlanks()
        if !name.isEmpty { names.insert(String(Substring(name))) }
      }
    }
    self.names = names
  }

  /// Returns whether the response has the tag.
  package func contains(_ name: String) -> Bool { names.contains(name) }
}
