/// The range of bytes in a 206 response (`Content-Range`, RFC 9110 §14.4).
package struct ContentRange: Hashable, Sendable {
  package let first: Int64
  package let last: Int64
  /// The length of the complete representation, or `nil` if the server does not know it.
  package let complete: Int64?

  /// Parses a field value. Returns `nil` for a unit other than bytes, for an unsatisfied range (`bytes */9`) and for an invalid
  /// value.
  package init?(_ value: String) {
    let parts = value.split(separator: " ", omittingEmptySubsequences: true)
    guard parts.count == 2, parts[0].lowercased() == "bytes" else { return nil }
    let sides = parts[1].split(separator: "/", omittingEmptySubsequences: false)
    guard sides.count == 2 else { return nil }
    let ends = sides[0].split(separator: "-", omittingEmptySubsequences: false)
    // Without a complete length, only this bounds the last position, and the length of the range must not overflow.
    guard ends.count == 2, let first = Self.number(ends[0]), let last = Self.number(ends[1]), first <= last, last < .max else {
      return nil
    }
    if sides[1] == "*" {
      complete = nil
    } else {
      guard let complete = Self.number(sides[1]), last < complete else { return nil }
      self.complete = complete
    }
    (self.first, self.last) = (first, last)
  }

  /// The length of the range in bytes.
  package var length: Int64 { last - first + 1 }

  /// Parses a number that consists of digits only. `Int64("+1")` is a number, but not a valid position.
  static func number(_ text: some StringProtocol) -> Int64? {
    guard !text.isEmpty, text.utf8.allSatisfy({ (48...57).contains($0) }) else { return nil }
    return Int64(text)
  }
}
