package import HTTPTypes

/// The range of bytes in a 206 response (`Content-Range`, RFC 9110 §14.4).
package struct ContentRange: Hashable, Sendable {
  /// The positions of the bytes in the complete representation: at least one, and none of them beyond its end.
  package let bytes: Range<Int64>
  /// The length of the complete representation in bytes, or `nil` if the server does not know it.
  package let completeLength: Int64?

  /// Creates a range of a representation.
  ///
  /// - Parameters:
  ///   - bytes: The positions of the bytes, at least one.
  ///   - completeLength: The length of the complete representation, at least the end of the range.
  package init(_ bytes: Range<Int64>, of completeLength: Int64) { (self.bytes, self.completeLength) = (bytes, completeLength) }

  /// Reads the field of a response. Returns `nil` if it is absent, has different lines or has an invalid value.
  package init?(_ fields: HTTPFields) {
    guard let line = fields.single(.contentRange) else { return nil }
    self.init(String(Substring(line.value[...].utf8.trimmingBlanks())))
  }

  /// Parses a field value. Returns `nil` for a unit other than bytes, for an unsatisfied range (`bytes */9`), for syntax that the
  /// grammar does not have (signs, more than one space), for inconsistent numbers and for numbers from 2^63.
  package init?(_ value: String) {
    // Names of units are case-insensitive (§14.1).
    guard value.prefix(6).lowercased() == "bytes " else { return nil }
    let sides = value.dropFirst(6).split(separator: "/", omittingEmptySubsequences: false)
    guard sides.count == 2 else { return nil }
    let ends = sides[0].split(separator: "-", omittingEmptySubsequences: false)
    // Without a complete length, only this bounds the last position, and the end of the range must not overflow.
    guard ends.count == 2, let first = Int64(digits: ends[0]), let last = Int64(digits: ends[1]), first <= last, last < .max
    else { return nil }
    if sides[1] == "*" {
      completeLength = nil
    } else {
      guard let length = Int64(digits: sides[1]), last < length else { return nil }
      completeLength = length
    }
    bytes = first..<(last + 1)
  }

  /// The length of the range in bytes. `bytes.count` is an `Int`, which may be too small for it.
  package var length: Int64 { bytes.upperBound - bytes.lowerBound }

  /// The value of the field.
  package var fieldValue: String {
    "bytes \(bytes.lowerBound)-\(bytes.upperBound - 1)/\(completeLength.map { "\($0)" } ?? "*")"
  }
}
