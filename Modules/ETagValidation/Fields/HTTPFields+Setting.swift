internal import HTTPTypes

extension HTTPFields {
  /// Gives a field one value, at its first line's place, so that the order of the others is the origin's.
  mutating func set(_ name: HTTPField.Name, _ value: String) {
    guard contains(name) || hasRoom(for: 1) else { return }
    self[name] = value
  }

  /// The answer's age in whole seconds, in place of any that it came with (RFC 9111 §5.1).
  mutating func setAge(_ age: Duration) { set(.age, String(age.components.seconds)) }
}
