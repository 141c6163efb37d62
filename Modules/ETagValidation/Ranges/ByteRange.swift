internal import CacheCore

/// A range in a `Range` field (RFC 9110 §14.1.2).
enum ByteRange: Equatable {
  /// A range from a byte to another, inclusive, or to the last byte.
  case from(Int64, to: Int64?)
  /// A range with the given number of bytes at the end.
  case suffix(Int64)

  /// Returns the ranges of the field, or `nil` if the field must be ignored, because of another unit or invalid syntax (§14.2).
  ///
  /// Numbers beyond 2^63 are read as 2^63 − 1, which no body reaches.
  static func ranges(_ text: String) -> [ByteRange]? {
    let text = text[...].utf8.trimmingBlanks()
    guard let equals = text.firstIndex(of: UInt8(ascii: "=")), Substring(text[..<equals]).lowercased() == "bytes" else {
      return nil
    }
    var ranges: [ByteRange] = []
    for member in text[text.index(after: equals)...].split(separator: UInt8(ascii: ","), omittingEmptySubsequences: true) {
      let member = member.trimmingBlanks()
      if member.isEmpty { continue }
      guard let range = ByteRange(member), ranges.count < 1_000 else { return nil }
      ranges.append(range)
    }
    return ranges.isEmpty ? nil : ranges
  }

  private init?(_ member: Substring.UTF8View) {
    guard let dash = member.firstIndex(of: UInt8(ascii: "-")) else { return nil }
    let tail = member[member.index(after: dash)...]
    if dash == member.startIndex {
      guard let count = Self.number(tail) else { return nil }
      self = .suffix(count)
      return
    }
    guard let first = Self.number(member[..<dash]) else { return nil }
    if tail.isEmpty {
      self = .from(first, to: nil)
    } else {
      guard let last = Self.number(tail), last >= first else { return nil }
      self = .from(first, to: last)
    }
  }

  /// Returns the number, or `nil` if the text does not consist of digits only.
  static func number(_ digits: Substring.UTF8View) -> Int64? {
    guard !digits.isEmpty else { return nil }
    var value: Int64 = 0
    for digit in digits {
      guard case UInt8(ascii: "0")...UInt8(ascii: "9") = digit else { return nil }
      let (product, overflow) = value.multipliedReportingOverflow(by: 10)
      let (sum, overflowed) = product.addingReportingOverflow(Int64(digit - UInt8(ascii: "0")))
      value = overflow || overflowed ? .max : sum
    }
    return value
  }

  /// Returns the bytes of this range in a body of `length` bytes, or `nil` if the range is not satisfiable (§14.1.2).
  func resolved(in length: Int64) -> Range<Int64>? {
    switch self {
    case .from(let first, let last):
      guard first < length else { return nil }
      return first..<(last.map { min($0, length - 1) + 1 } ?? length)
    case .suffix(let count):
      guard count > 0, length > 0 else { return nil }
      return max(0, length - count)..<length
    }
  }
}
