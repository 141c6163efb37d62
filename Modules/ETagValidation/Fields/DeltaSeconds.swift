/// A count of seconds as directives and `Age` carry it (RFC 9111 §1.2.2).
enum DeltaSeconds {
  /// What every larger number is read as: 2^31 s, 68 years.
  static let limit: Int64 = 2_147_483_648

  /// The number of seconds; nil unless there are digits and nothing else.
  static func duration(_ digits: some Sequence<UInt8>) -> Duration? {
    var value: Int64?
    for digit in digits {
      guard case UInt8(ascii: "0")...UInt8(ascii: "9") = digit else { return nil }
      value = min(limit, (value ?? 0) * 10 + Int64(digit - UInt8(ascii: "0")))
    }
    return value.map { .seconds($0) }
  }
}
