internal import HTTPTypes

extension HTTPField {
  /// The bytes of the value. Strings would be repaired, and two different invalid UTF-8 values could then be equal.
  var bytes: [UInt8] { withUnsafeBytesOfValue { Array($0) } }

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
