internal import CacheCore

/// The members of a comma-separated list in one field line (RFC 9110 §5.6.1): trimmed, empty ones left out, commas in quoted
/// strings no separators.
///
/// A quote that is never closed is an ordinary character, so that it can't hide the members behind it (`private="x, no-store`).
/// Linear in the line's length, whatever the bytes.
struct FieldList: Sequence, IteratorProtocol {
  private var rest: Substring.UTF8View
  private var honoursQuotes = true

  init(_ line: String) { rest = line[...].utf8 }

  mutating func next() -> Substring.UTF8View? {
    while !rest.isEmpty {
      let member = take().trimmingBlanks()
      if !member.isEmpty { return member }
    }
    return nil
  }

  private mutating func take() -> Substring.UTF8View {
    var end = rest.startIndex
    while end != rest.endIndex {
      let byte = rest[end]
      let next = rest.index(after: end)
      if byte == UInt8(ascii: ",") {
        defer { rest = rest[next...] }
        return rest[..<end]
      }
      end = next
      if byte == UInt8(ascii: "\""), honoursQuotes {
        // After one open quote the others count for nothing: looking for the end of each again would be quadratic.
        if let close = rest.closingQuote(from: next) { end = rest.index(after: close) } else { honoursQuotes = false }
      }
    }
    defer { rest = rest[end...] }
    return rest
  }
}

extension Substring.UTF8View {
  /// Where the quoted string that was opened just before `start` ends (RFC 9110 §5.6.4).
  func closingQuote(from start: Index) -> Index? {
    var position = start
    while position != endIndex {
      let byte = self[position]
      if byte == UInt8(ascii: "\"") { return position }
      formIndex(after: &position)
      if byte == UInt8(ascii: "\\"), position != endIndex { formIndex(after: &position) }
    }
    return nil
  }
}
