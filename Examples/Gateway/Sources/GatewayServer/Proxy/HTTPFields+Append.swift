import HTTPTypes

extension HTTPFields {
  /// Appends a field. Does nothing if the name is not a token.
  mutating func append(_ name: String, _ value: String) {
    guard let name = HTTPField.Name(name) else { return }
    append(HTTPField(name: name, value: value))
  }
}
