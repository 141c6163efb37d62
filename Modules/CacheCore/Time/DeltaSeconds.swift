/// A number of seconds, as in directives and `Age` (RFC 9111 §1.2.2).
package enum DeltaSeconds {
  /// The maximum value, 2^31 s (68 years). Larger numbers are read as this one.
  package static let limit: Int64 = 2_147_483_648

  /// Returns the number of seconds, or `nil` if the text does not consist of digits only.
  package static func duration(_ digits: some Sequence<UInt8>) -> Duration? {
    var value: Int64?
    for digit in digits {
      guard case UInt8(ascii: "0")...UInt8(ascii: "9") = digit else { return nil }
      value = min(limit, (value ?? 0) * 10 + Int64(digit - UInt8(ascii: "0")))
    }
    return value.map { .seconds($0) }
  }
}
