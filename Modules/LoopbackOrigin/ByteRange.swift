#if Origin
  /// A `Range` value, seen against a length (RFC 9110 §14.1.2).
  enum ByteRange: Hashable {
    /// Not bytes, not one range, or malformed: the whole is sent.
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

    /// Outer nil: no number. Inner nil: nothing there. Numbers too large for an `Int` are as good as the largest.
    private static func position(_ text: Substring) -> Int?? {
      guard text.utf8.allSatisfy({ (48...57).contains($0) }) else { return .none }
      return text.isEmpty ? .some(nil) : .some(Int(text) ?? .max)
    }
  }
#endif
