internal import HTTPTypes

/// The request fields that selected an answer, as its `Vary` names them (RFC 9110 §12.5.5).
struct Vary {
  /// An answer that says more names is not stored: nobody means that, and each request would be compared by all of them.
  static let mostNames = 64

  /// Each once, ordered by name.
  let names: [HTTPField.Name]
  /// `*`, or a member that can't be a field's name: what selected the answer is not known, so it matches no request (RFC 9111
  /// §4.1).
  let matchesNothing: Bool

  init(_ fields: HTTPFields) {
    var names: Set<HTTPField.Name> = []
    var unknown = false
    if fields.contains(.vary) {
      for line in fields[values: .vary] {
        for member in FieldList(line) {
          // `*` is a token, so it would pass as a name.
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
