internal import HTTPTypes

extension HTTPField {
  /// The bytes of the value. Strings would be repaired, and two different invalid UTF-8 values could then be equal.
  var bytes: [UInt8] { withUnsafeBytesOfValue { Array($0) } }

  /// Returns whether two values are equal byte for byte.
  func hasSameValue(as other: HTTPField) -> Bool {
    withUnsafeBytesOfValue { mine in
      other.withUnsafeBytesOfValue { Self.areEqual(UnsafeRawBufferPointer(mine), UnsafeRawBufferPointer($0)) }
    }
  }

  /// Compares word by word, because dates and tags are compared for each response.
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

  /// Returns a field with the same bytes and another name.
  func renamed(_ name: Name) -> HTTPField {
    var copy = self
    copy.name = name
    return copy
  }
}

extension HTTPFields {
  /// Replaces all fields of a name by one field.
  mutating func replace(_ name: HTTPField.Name, with field: HTTPField) {
    self[fields: name] = [field]
  }
}

extension Substring.UTF8View {
  /// Returns whether this is the given lowercase field name, in any case (RFC 9110 §5.1).
  func isName(_ canonical: String) -> Bool {
    guard count == canonical.utf8.count else { return false }
    return elementsEqual(canonical.utf8) { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) ? $0 | 0x20 == $1 : $0 == $1 }
  }
}
