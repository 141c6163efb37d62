package import HTTPTypes

/// The rules for fields that may occur once and occur several times (RFC 9110 §5.3). `HTTPFields[_:]` joins such lines with a
/// comma, and the result is neither value. The article of ETagValidation has a table of the rules.
extension HTTPFields {
  /// Returns the first line of a field. It is the value that browsers use for most fields.
  package func first(_ name: HTTPField.Name) -> HTTPField? { first { $0.name == name } }

  /// Returns the only value of a field, or `nil` if its lines differ. Lines with equal bytes count as one.
  package func single(_ name: HTTPField.Name) -> HTTPField? {
    var found: HTTPField?
    for field in self where field.name == name {
      guard let known = found else {
        found = field
        continue
      }
      let isEqual = known.withUnsafeBytesOfValue { mine in field.withUnsafeBytesOfValue { mine.elementsEqual($0) } }
      guard isEqual else { return nil }
    }
    return found
  }

  /// Returns the earliest valid `Date`, or `nil` if there is none. A response can thereby be too old, but not too young.
  package func date(receivedAt now: Timestamp) -> Timestamp? {
    var earliest: Timestamp?
    for field in self where field.name == .date {
      guard let date = HTTPDate(field.value, receivedAt: now)?.timestamp else { continue }
      earliest = Swift.min(earliest ?? date, date)
    }
    return earliest
  }

  /// The first member of `Age`, or `nil` if it is absent or not a number (RFC 9111 §5.1).
  package var statedAge: Duration? {
    first(.age).flatMap { field in
      field.value.utf8.split(separator: UInt8(ascii: ",")).lazy.map { Substring($0).utf8.trimmingBlanks() }.first { !$0.isEmpty }
    }.flatMap { DeltaSeconds.duration($0) }
  }

  /// The value of `Content-Type`: of several, the last valid one, as browsers read it (Fetch, "extract a MIME type"). Several
  /// lines, and one line with commas, are alike.
  package var contentType: String? {
    guard let first = first(.contentType) else { return nil }
    var last: Substring.UTF8View?
    for field in self where field.name == .contentType {
      for member in Self.members(field.value) {
        let type = Self.essence(member)
        guard Self.isMediaType(type) else { continue }
        // `text/html` after `text/html;charset=utf-8` does not remove the character set.
        if let last, type.count == member.count, Self.areEqual(type, Self.essence(last)) { continue }
        last = member
      }
    }
    return last.map { String(Substring($0)) } ?? first.value
  }

  /// Returns the parts between commas that are not in quotation marks.
  private static func members(_ line: String) -> [Substring.UTF8View] {
    var (isQuoted, isEscaped) = (false, false)
    let parts = line[...].utf8.split { byte in
      defer { isEscaped = byte == UInt8(ascii: "\\") && isQuoted && !isEscaped }
      if byte == UInt8(ascii: "\""), !isEscaped { isQuoted.toggle() }
      return byte == UInt8(ascii: ",") && !isQuoted
    }
    return parts.map { $0.trimmingBlanks() }
  }

  /// Returns a media type without its parameters.
  private static func essence(_ type: Substring.UTF8View) -> Substring.UTF8View {
    type.prefix { $0 != UInt8(ascii: ";") }.trimmingBlanks()
  }

  private static func isMediaType(_ text: Substring.UTF8View) -> Bool {
    let parts = text.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    return parts.count == 2 && parts.allSatisfy { !$0.isEmpty && $0.allSatisfy { $0 > 0x20 && $0 < 0x7F } }
      && !text.elementsEqual("*/*".utf8)
  }

  private static func areEqual(_ a: Substring.UTF8View, _ b: Substring.UTF8View) -> Bool {
    Substring(a).lowercased() == Substring(b).lowercased()
  }
}
