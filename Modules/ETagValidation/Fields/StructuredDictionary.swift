internal import CacheCore

/// A dictionary of structured fields (RFC 8941 §3.2, with the types that RFC 9651 adds). It is parsed as strictly as §4.2
/// requires: any error makes the whole dictionary invalid.
///
/// Parameters and inner lists are skipped, because no directive uses them. Parsing takes linear time.
struct StructuredDictionary {
  enum Value: Equatable {
    case integer(Int64)
    case boolean(Bool)
    case string(String)
    case token(String)
    /// A type that no directive uses: a decimal, bytes, a date, a display string or an inner list.
    case other
  }

  /// The members, ordered by the first occurrence of their keys. The last value of a key applies.
  private(set) var members: [(key: String, value: Value)] = []

  /// Creates a dictionary from all lines of a field, or returns `nil` if they are invalid.
  init?(lines: [[UInt8]]) {
    var reader = StructuredReader(lines.joined(separator: [UInt8(ascii: ",")]))
    reader.skip { $0 == 0x20 }
    while !reader.isAtEnd {
      guard let key = reader.key(), let value = reader.memberValue() else { return nil }
      if let index = members.firstIndex(where: { $0.key == key }) {
        members[index].value = value
      } else {
        // There are fewer directives than that, and the search for each key among the others must not become slow.
        guard members.count < 64 else { return nil }
        members.append((key, value))
      }
      reader.skip { $0 == 0x20 || $0 == 0x09 }
      if reader.isAtEnd { return }
      guard reader.take(UInt8(ascii: ",")) else { return nil }
      reader.skip { $0 == 0x20 || $0 == 0x09 }
      // A trailing comma is invalid.
      if reader.isAtEnd { return nil }
    }
  }
}
