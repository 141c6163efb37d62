internal import HTTPTypes

extension HTTPField {
  /// The value's bytes: two values that are no UTF-8 must not look alike because both were repaired.
  var bytes: [UInt8] { withUnsafeBytesOfValue { Array($0) } }

  /// Whether the two values are equal byte for byte.
  func hasSameValue(as other: HTTPField) -> Bool {
    withUnsafeBytesOfValue { mine in
      other.withUnsafeBytesOfValue { Self.areEqual(UnsafeRawBufferPointer(mine), UnsafeRawBufferPointer($0)) }
    }
  }

  /// By words: dates and tags are compared with each answer.
  private static func areEqual(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Bool {
    guard a.count == b.count else { return false }
    var index = 0
    while index + 8 <= a.count {
      guard a.loadUnaligned(fromByteOffset: index, as: UInt64.self) == b.loadUnaligned(fromByteOffset: index, as: UInt64.self)
      else { return false }
      index += 8
    }
    while index < a.count {
      guard a[index] == b[index] else { return false }
      index += 1
    }
    return true
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

  /// The field of that name, where there is one alone.
  func single(_ name: HTTPField.Name) -> HTTPField? {
    var found: HTTPField?
    for field in self where field.name == name {
      guard found == nil else { return nil }
      found = field
    }
    return found
  }

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
