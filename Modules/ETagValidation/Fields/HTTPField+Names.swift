internal import HTTPTypes

extension HTTPField {
  /// The value's bytes: two values that are no UTF-8 must not look alike because both were repaired.
  var bytes: [UInt8] { withUnsafeBytesOfValue { Array($0) } }

  /// Whether the two values are equal byte for byte.
  func hasSameValue(as other: HTTPField) -> Bool {
    withUnsafeBytesOfValue { mine in other.withUnsafeBytesOfValue { mine.elementsEqual($0) } }
  }

  /// The same value, byte for byte, under another name.
  func renamed(_ name: Name) -> HTTPField {
    var copy = self
    copy.name = name
    return copy
  }
}

extension HTTPFields {
  /// The first field of that name.
  func first(_ name: HTTPField.Name) -> HTTPField? { first { $0.name == name } }

  /// Puts one field in the place of all of its name.
  mutating func replace(_ name: HTTPField.Name, with field: HTTPField) {
    self[fields: name] = [field]
  }
}

extension Substring.UTF8View {
  /// Whether this is the field name that is given in lower case; letters in any case (RFC 9110 §5.1).
  func isName(_ canonical: String) -> Bool {
    guard count == canonical.utf8.count else { return false }
    return elementsEqual(canonical.utf8) { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) ? $0 | 0x20 == $1 : $0 == $1 }
  }
}
