internal import CacheCore

/// A dictionary of structured fields (RFC 8941 §3.2, with the types that RFC 9651 adds), read as strictly as §4.2 demands: what
/// does not parse to its last byte is none.
///
/// Parameters and inner lists are read over; no directive uses them. Linear in the text's length.
struct StructuredDictionary {
  enum Value: Equatable {
    case integer(Int64)
    case boolean(Bool)
    case string(String)
    case token(String)
    /// Of a type that no directive has: a decimal, bytes, a date, a display string, an inner list.
    case other
  }

  /// In the order of their keys' first appearance; of a key that appears twice the last value.
  private(set) var members: [(key: String, value: Value)] = []

  /// The dictionary of all lines of a field; nil when they do not parse.
  init?(lines: [[UInt8]]) {
    var reader = StructuredReader(lines.joined(separator: [UInt8(ascii: ",")]))
    reader.skip { $0 == 0x20 }
    while !reader.isAtEnd {
      guard let key = reader.key(), let value = reader.memberValue() else { return nil }
      if let index = members.firstIndex(where: { $0.key == key }) {
        members[index].value = value
      } else {
        // More directives than exist: nobody means that, and looking each up among the others must not become slow.
        guard members.count < 64 else { return nil }
        members.append((key, value))
      }
      reader.skip { $0 == 0x20 || $0 == 0x09 }
      if reader.isAtEnd { return }
      guard reader.take(UInt8(ascii: ",")) else { return nil }
      reader.skip { $0 == 0x20 || $0 == 0x09 }
      // A comma at the end.
      if reader.isAtEnd { return nil }
    }
  }
}
