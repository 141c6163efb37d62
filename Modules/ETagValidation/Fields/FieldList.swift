internal import CacheCore

/// The members of a comma-separated list in one field line (RFC 9110 §5.6.1). Members are trimmed, empty ones are omitted, and
/// commas in quoted strings do not separate.
///
/// An unclosed quote is an ordinary character, so that it cannot hide the members after it (`private="x, no-store`). Reading
/// takes linear time for any bytes.
struct FieldList: Sequence, IteratorProtocol {
  private var rest: Substring.UTF8View
  private var honorsQuotes = true

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
      if byte == UInt8(ascii: "\""), honorsQuotes {
        // After one unclosed quote, later quotes are ignored. Searching for the end of each would take quadratic time.
        if let close = rest.closingQuote(from: next) { end = rest.index(after: close) } else { honorsQuotes = false }
      }
    }
    defer { rest = rest[end...] }
    return rest
  }
}

extension Substring.UTF8View {
  /// Returns the end of the quoted string that was opened just before `start` (RFC 9110 §5.6.4).
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
