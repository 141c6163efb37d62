internal import CacheCore
internal import HTTPTypes

/// The request fields that selected a response, as listed by its `Vary` (RFC 9110 §12.5.5).
struct Vary {
  /// The maximum number of names. A response with more is not stored, because each request would be compared by all of them.
  static let mostNames = 64

  /// The distinct names, sorted.
  private(set) var names: [HTTPField.Name] = []
  /// Whether the response matches no request, because of `*` or an invalid name: its selecting fields are unknown (RFC 9111
  /// §4.1).
  private(set) var matchesNothing = false

  init() {}

  init(_ fields: HTTPFields) {
    for position in fields.positions(of: .vary) {
      fields[position].withUnsafeBytesOfValue { line in
        for member in FieldList(line) { add(member) }
      }
    }
    if names.count > 1 {
      names.sort { $0.canonicalName < $1.canonicalName }
      names = names.indices.filter { $0 == 0 || names[$0] != names[$0 - 1] }.map { names[$0] }
    }
    if names.count > Self.mostNames { matchesNothing = true }
  }

  private mutating func add(_ member: UnsafeBufferPointer<UInt8>) {
    // `*` is a token, so it would be accepted as a name.
    if !member.isName("*"), let name = HTTPField.Name(String(decoding: member, as: UTF8.self)) {
      names.append(name)
    } else {
      matchesNothing = true
    }
  }
}
