internal import HTTPTypes

extension HTTPField {
  /// The value's bytes: two values that are no UTF-8 must not look alike because both were repaired.
  var bytes: [UInt8] { withUnsafeBytesOfValue { Array($0) } }

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
