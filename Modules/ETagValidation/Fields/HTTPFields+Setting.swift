internal import HTTPTypes

extension HTTPFields {
  /// Sets a field to one value at the position of its first line, so that the order of the other fields is unchanged.
  mutating func set(_ name: HTTPField.Name, _ value: String) {
    guard contains(name) || hasCapacity(for: 1) else { return }
    self[name] = value
  }

  /// Sets `Age` to a number of whole seconds and replaces any received value (RFC 9111 §5.1).
  mutating func setAge(_ age: Duration) { set(.age, String(age.components.seconds)) }
}
