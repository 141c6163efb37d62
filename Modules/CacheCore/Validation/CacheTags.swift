package import HTTPTypes

/// The names by which an origin lets groups of answers be purged: `Cache-Tag`, a list with commas, and `Surrogate-Key`, one with
/// spaces.
///
/// No RFC defines them; both are what the caches of content delivery networks read. Tags are compared byte for byte.
package struct CacheTags: Hashable, Sendable {
  /// Each tag once.
  package let names: Set<String>

  /// The tags that an answer's fields state. Empty members are none.
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

  /// Whether the answer bears the tag.
  package func contains(_ name: String) -> Bool { names.contains(name) }
}
