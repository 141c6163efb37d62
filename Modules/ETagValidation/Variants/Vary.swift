internal import HTTPTypes

/// The request fields that selected a response, as listed by its `Vary` (RFC 9110 §12.5.5).
struct Vary {
  /// The maximum number of names. A response with more is not stored, because each request would be compared by all of them.
  static let mostNames = 64

  /// The distinct names, sorted.
  let names: [HTTPField.Name]
  /// Whether the response matches no request, because of `*` or an invalid name: its selecting fields are unknown (RFC 9111
  /// §4.1).
  let matchesNothing: Bool

  init(_ fields: HTTPFields) {
    var names: Set<HTTPField.Name> = []
    var unknown = false
    if fields.contains(.vary) {
      for line in fields[values: .vary] {
        for member in FieldList(line) {
          // `*` is a token, so it would be accepted as a name.
          if member.elementsEqual(CollectionOfOne(UInt8(ascii: "*"))) {
            unknown = true
          } else if let name = HTTPField.Name(String(Substring(member))) {
            names.insert(name)
          } else {
            unknown = true
          }
        }
      }
    }
    self.names = names.count < 2 ? Array(names) : names.sorted { $0.canonicalName < $1.canonicalName }
    matchesNothing = unknown || names.count > Self.mostNames
  }
}
