internal import CacheCore

/// What a `Range` field asks for of a body (RFC 9110 §14.1.2).
enum ByteRange: Equatable {
  /// From a byte to another, that one included; without an end, to the last.
  case from(Int64, to: Int64?)
  /// The last so many bytes.
  case suffix(Int64)

  /// The ranges that the field asks for; nil when it is none that a recipient must understand (another unit, malformed), so that
  /// it is ignored (§14.2).
  ///
  /// Numbers beyond 2^63 are read as 2^63 - 1, which no body reaches.
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

  /// A number of digits alone; nil when there is none.
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

  /// The bytes that this is in a body of `length` bytes; nil when there are none: it can't be satisfied (§14.1.2).
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
