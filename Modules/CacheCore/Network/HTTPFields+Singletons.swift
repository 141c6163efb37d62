package import HTTPTypes

/// The rules for fields that may occur once and occur several times (RFC 9110 §5.3). `HTTPFields[_:]` joins such lines with a
/// comma, and the result is neither value. The article of ETagValidation has a table of the rules.
extension HTTPFields {
  /// Returns the only value of a field, or `nil` if its lines differ. Lines with equal bytes count as one.
  package func single(_ name: HTTPField.Name) -> HTTPField? {
    var found: HTTPField?
    for position in positions(of: name) {
      guard let known = found else {
        found = self[position]
        continue
      }
      guard known.hasSameValue(as: self[position]) else { return nil }
    }
    return found
  }

  /// Returns the earliest valid `Date`, or `nil` if there is none. A response can thereby be too old, but not too young.
  package func date(receivedAt now: Timestamp) -> Timestamp? {
    var earliest: Timestamp?
    for position in positions(of: .date) {
      guard let date = HTTPDate(self[position].value, receivedAt: now)?.timestamp else { continue }
      earliest = Swift.min(earliest ?? date, date)
    }
    return earliest
  }

  /// The first member of `Age`, or `nil` if it is absent or not a number (RFC 9111 §5.1).
  package var statedAge: Duration? {
    guard let field = first(.age) else { return nil }
    return field.withUnsafeBytesOfValue { value in
      let isSeparator = { (byte: UInt8) in byte == UInt8(ascii: ",") || byte == 0x20 || byte == 0x09 }
      let member = value.drop(while: isSeparator).prefix { $0 != UInt8(ascii: ",") }
      return DeltaSeconds.duration(UnsafeBufferPointer(rebasing: member).trimmingBlanks())
    }
  }

  /// The value of `Content-Length` in bytes, or `nil` if it is absent or invalid. Repeated equal lengths are one length
  /// (RFC 9112 §6.3).
  package var contentLength: Int64? {
    guard let value = self[.contentLength] else { return nil }
    if let length = Int64(digits: value) { return length }
    let lengths = Set(value.utf8.split(separator: UInt8(ascii: ",")).map { Int64(digits: Substring($0.trimmingBlanks())) })
    guard lengths.count == 1, let length = lengths.first else { return nil }
    return length
  }

  /// The value of `Content-Type`: of several, the last valid one, as browsers read it (Fetch, "extract a MIME type"). Several
  /// lines, and one line with commas, are alike.
  package var contentType: String? {
    guard let first = first(.contentType) else { return nil }
    var last: Substring.UTF8View?
    for position in positions(of: .contentType) {
      for member in Self.members(self[position].value) {
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

extension HTTPField {
  /// Returns whether two values are equal byte for byte.
  package func hasSameValue(as other: HTTPField) -> Bool {
    withUnsafeBytesOfValue { mine in
      other.withUnsafeBytesOfValue { Self.areEqual(UnsafeRawBufferPointer(mine), UnsafeRawBufferPointer($0)) }
    }
  }

  /// Compares word by word, because dates and tags are compared for each response.
  private static func areEqual(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Bool {
    guard a.count == b.count else { return false }
    var index = 0
    while index + 8 <= a.count {
      guard a.loadUnaligned(fromByteOffset: index, as: UInt64.self) == b.loadUnaligned(fromByteOffset: index, as: UInt64.self)
      else { return false }
      index += 8
    }
    while index < a.count {
      guard a[index] == b[index] else { return false }
      index += 1
    }
    return true
  }
}
