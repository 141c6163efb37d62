/// A number of seconds, as in directives and `Age` (RFC 9111 §1.2.2).
package enum DeltaSeconds {
  /// The maximum value, 2^31 s (68 years). Larger numbers are read as this one.
  package static let limit: Int64 = 2_147_483_648

  /// Returns the number of seconds, or `nil` if the text does not consist of digits only.
  package static func duration(_ digits: UnsafeBufferPointer<UInt8>) -> Duration? {
    guard !digits.isEmpty else { return nil }
    var value: Int64 = 0
    for byte in digits {
      let digit = byte &- UInt8(ascii: "0")
      guard digit < 10 else { return nil }
      value = min(limit, value * 10 + Int64(digit))
    }
    return .seconds(value)
  }
}
