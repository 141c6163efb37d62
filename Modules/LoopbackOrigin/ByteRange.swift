#if Origin
/// A `Range` field applied to a body of a known length (RFC 9110 §14.1.2).
enum ByteRange: Hashable {
  /// Another unit, several ranges or a malformed value. The whole body is sent.
  case ignored
  case unsatisfiable
  case bytes(Range<Int>)

  static func parse(_ value: String, length: Int) -> Self {
    let parts = value.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, parts[0].lowercased() == "bytes", !parts[1].contains(",") else { return .ignored }
    let ends = String(parts[1]).trimmed.split(separator: "-", omittingEmptySubsequences: false)
    guard ends.count == 2, let first = position(ends[0]), let last = position(ends[1]) else { return .ignored }
    switch (first, last) {
    case (nil, nil): return .ignored
    case (nil, let suffix?): return suffix > 0 && length > 0 ? .bytes(max(0, length - suffix)..<length) : .unsatisfiable
    case (let first?, let last?) where last < first: return .ignored
    case (let first?, let last): return first < length ? .bytes(first..<min(length - 1, last ?? .max) + 1) : .unsatisfiable
    }
  }

  /// Parses a position. The outer `nil` means an invalid number, the inner `nil` an empty text. Numbers too large for an `Int`
  /// become its maximum.
  private static func position(_ text: Substring) -> Int?? {
    guard text.utf8.allSatisfy({ (48...57).contains($0) }) else { return .none }
    return text.isEmpty ? .some(nil) : .some(Int(text) ?? .max)
  }
}
#endif
