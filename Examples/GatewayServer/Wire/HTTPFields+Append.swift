#if Gateway
import HTTPTypes

extension HTTPFields {
  /// Adds a field behind the others; a name that is no token adds nothing.
  mutating func append(_ name: String, _ value: String) {
    guard let name = HTTPField.Name(name) else { return }
    append(HTTPField(name: name, value: value))
  }
}
#endif
