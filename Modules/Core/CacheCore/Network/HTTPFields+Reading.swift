public import HTTPTypes

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

  /// Returns whether `If-None-Match` lists a tag without a comma, by weak comparison (RFC 9110 §13.1.2). `*` lists every tag.
  package func noneMatchLists(_ tag: String) -> Bool {
    (self[.ifNoneMatch] ?? "").utf8.split(separator: UInt8(ascii: ",")).contains { member in
      ["*", tag, "W/\(tag)"].contains(String(Substring(member.trimmingBlanks())))
    }
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

/// Access to fields by position. Iterating over `HTTPFields` copies each field, which retains three strings.
extension HTTPFields {
  /// Returns the positions of all lines of a field, in order.
  @inlinable
  package func positions(of name: HTTPField.Name) -> FieldPositions { FieldPositions(self, name.canonicalName) }

  /// Returns the first line of a field. It is the value that browsers use for most fields.
  @inlinable
  package func first(_ name: HTTPField.Name) -> HTTPField? {
    var positions = positions(of: name)
    return positions.next().map { self[$0] }
  }

  /// Returns whether a field is a digest of the content, which differs between the whole and a part, given its name in lower
  /// case.
  package static func digestsContent(_ name: String) -> Bool { name == "content-digest" || name == "content-md5" }

  /// Returns the fields except those whose names, in lower case, match. It copies nothing if none does.
  @inlinable
  package func removing(_ matches: (String) -> Bool) -> HTTPFields {
    var left = self
    var removed = 0
    for position in (0..<count).reversed() where matches(self[position].name.canonicalName) {
      // Copies all fields at once. A removal from shared fields would copy them one by one.
      if removed == 0 { left.reserveCapacity(count) }
      removed += 1
      // Each removal moves the fields behind it. Moving all of them for each of many would take quadratic time.
      guard removed <= 8 else {
        left.removeAll { matches($0.name.canonicalName) }
        return left
      }
      left.removeElement(at: position)
    }
    return left
  }
}

extension RangeReplaceableCollection where Index == Int {
  /// Removes an element. Generic code calls the implementation that `HTTPTypes` has specialized. A direct call on `HTTPFields`
  /// would create generic metadata each time, and take five times as long.
  @inlinable
  mutating func removeElement(at position: Int) { removeSubrange(position..<position + 1) }
}

/// The positions of all lines of one field.
@usableFromInline
package struct FieldPositions: Sequence, IteratorProtocol {
  @usableFromInline let fields: HTTPFields
  @usableFromInline let name: String
  @usableFromInline var position = 0

  @inlinable
  init(_ fields: HTTPFields, _ name: String) { (self.fields, self.name) = (fields, name) }

  @inlinable
  package mutating func next() -> Int? {
    while position < fields.count {
      defer { position += 1 }
      let candidate = fields[position].name.canonicalName
      // Few names have the same length.
      if candidate.utf8.count == name.utf8.count, candidate == name { return position }
    }
    return nil
  }
}

extension UInt8 {
  /// Whether the byte is a `tchar`, a character of a token (RFC 9110 §5.6.2).
  @inlinable package var isTokenByte: Bool {
    // A bit mask of the allowed characters below 64 and one of those from 64 on, because every field name is checked on each
    // read.
    let word: UInt64 = self < 64 ? 0x03FF_6CFA_0000_0000 : 0x57FF_FFFF_C7FF_FFFE
    return self < 128 && word &>> UInt64(self & 63) & 1 == 1
  }

  /// The value of a hexadecimal digit, or `nil` for other bytes.
  @inlinable package var hexValue: UInt8? {
    switch self {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): self - UInt8(ascii: "0")
    case UInt8(ascii: "A")...UInt8(ascii: "F"): self - UInt8(ascii: "A") + 10
    case UInt8(ascii: "a")...UInt8(ascii: "f"): self - UInt8(ascii: "a") + 10
    default: nil
    }
  }

  /// The byte in lower case, if it is an ASCII letter.
  @inlinable package var lowercased: UInt8 { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(self) ? self | 0x20 : self }

  /// The percent-encoding of the byte: `%`, and two digits in upper case (RFC 3986 §2.1).
  @inlinable package var percentEncoded: [UInt8] {
    func digit(_ value: UInt8) -> UInt8 { value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "A") + value - 10 }
    return [UInt8(ascii: "%"), digit(self >> 4), digit(self & 15)]
  }
}

extension BidirectionalCollection<UInt8> where SubSequence == Self {
  /// Returns the bytes without leading and trailing spaces and tabs (`OWS`, RFC 9110 §5.6.3).
  @inlinable
  package func trimmingBlanks() -> Self {
    var bytes = self
    while let first = bytes.first, first == 0x20 || first == 0x09 { bytes = bytes.dropFirst() }
    while let last = bytes.last, last == 0x20 || last == 0x09 { bytes = bytes.dropLast() }
    return bytes
  }
}

extension String {
  /// The members of a comma-separated list of tokens, in lower case (RFC 9110 §5.6.1).
  ///
  /// They are split by bytes. As a character, a comma can be one with an accent, and other recipients see two members.
  package var lowercasedMembers: [String] {
    utf8.split(separator: UInt8(ascii: ",")).map { Substring($0.trimmingBlanks()).lowercased() }
  }
}

extension Int64 {
  /// Parses a number that consists of decimal digits only. `Int64("+1")` is a number, but not a length or a position in HTTP.
  @inlinable
  package init?(digits text: some StringProtocol) {
    guard !text.isEmpty, text.utf8.allSatisfy({ (48...57).contains($0) }) else { return nil }
    self.init(text)
  }
}

extension UnsafeBufferPointer<UInt8> {
  /// Returns the bytes without leading and trailing spaces and tabs (`OWS`, RFC 9110 §5.6.3).
  @inlinable
  package func trimmingBlanks() -> Self {
    var (start, end) = (0, count)
    while start < end, self[start] == 0x20 || self[start] == 0x09 { start += 1 }
    while start < end, self[end - 1] == 0x20 || self[end - 1] == 0x09 { end -= 1 }
    return Self(rebasing: self[start..<end])
  }
}

extension HTTPFields {
  /// Returns the end-to-end fields, in the same order. A proxy, a gateway or a middleware forwards only these (RFC 9110 §7.6.1).
  ///
  /// ```swift
  /// let response = try await manager.respond(to: request)
  /// send(response.head.headerFields.endToEnd())
  /// ```
  ///
  /// It leaves out the fields about one connection (`Connection`, `Keep-Alive`, `TE`, `Trailer`, `Transfer-Encoding`, `Upgrade`,
  /// `Proxy-Connection`), those of the authentication with a proxy (§11.7), and the fields that `Connection` names.
  public func endToEnd() -> HTTPFields { endToEnd(keeping: { _ in false }) }

  /// Returns the end-to-end fields.
  ///
  /// - Parameter isKept: Returns whether a field is kept although `Connection` names it, given its name in lower case.
  package func endToEnd(keeping isKept: (String) -> Bool) -> HTTPFields {
    let named = namedByConnection
    if named.isEmpty { return removing { Self.isHopByHop($0) } }
    return removing { Self.isHopByHop($0) || (named.contains($0) && !isKept($0)) }
  }

  /// The field names in `Connection`, in lower case. The values `keep-alive` and `close` name no field.
  private var namedByConnection: Set<String> {
    var named = Set<String>()
    for position in positions(of: .connection) {
      let value = self[position].value
      if value == "keep-alive" || value == "close" { continue }
      named.formUnion(value.lowercasedMembers)
    }
    return named
  }

  /// Returns whether a field concerns a single connection (RFC 9110 §7.6.1, §11.7), given its name in lower case.
  ///
  /// Compares the length first, because every field of every message is checked.
  @inlinable
  package static func isHopByHop(_ name: String) -> Bool {
    switch name.utf8.count {
    case 2: name == "te"
    case 7: name == "trailer" || name == "upgrade"
    case 10: name == "connection" || name == "keep-alive"
    case 16: name == "proxy-connection"
    case 17: name == "transfer-encoding"
    case 18: name == "proxy-authenticate"
    case 19: name == "proxy-authorization"
    case 25: name == "proxy-authentication-info"
    default: false
    }
  }
}

extension HTTPFields {
  /// Returns the delay of `Retry-After` (RFC 9110 §10.2.3), or `nil` if the field is missing or invalid. Of several lines, the
  /// longest delay applies. Numbers too large for a `Duration` saturate.
  ///
  /// - Parameter now: The time at which the response was received. It is evaluated only for a date.
  package func retryAfter(receivedAt now: @autoclosure () -> Timestamp) -> Duration? {
    var longest: Duration?
    for position in positions(of: .retryAfter) {
      guard let delay = delay(self[position].value, now) else { continue }
      longest = Swift.max(longest ?? delay, delay)
    }
    return longest
  }

  private func delay(_ value: String, _ now: () -> Timestamp) -> Duration? {
    let text = value[...].utf8.trimmingBlanks()
    guard !text.isEmpty else { return nil }
    if text.allSatisfy({ (48...57).contains($0) }) {
      // A number of more than 64 bits is longer than any wait.
      return .seconds(Swift.min(Int64(Substring(text)) ?? .max, Int64.max / 1_000_000_000))
    }
    let now = now()
    guard let date = HTTPDate(value, receivedAt: now) else { return nil }
    // Measured by the server's clock if it sends `Date`, because ours may be wrong.
    return Swift.max(date.timestamp - (self.date(receivedAt: now) ?? now), .zero)
  }
}

/// A number of seconds, as in directives and `Age` (RFC 9111 §1.2.2).
package enum DeltaSeconds {
  /// The maximum value, 2^31 s (68 years). Larger numbers are read as this one.
  package static let limit: Int64 = 2_147_483_648

  /// Returns the number of seconds, or `nil` if the text does not consist of digits only.
  package static func duration(_ digits: UnsafeBufferPointer<UInt8>) -> Duration? {
    guard !digits.isEmpty else { return nil }
    var value: Int64 = 0
    for byte in digits {
      let digit = byte &- UInt8(ascii: "0")
      guard digit < 10 else { return nil }
      value = min(limit, value * 10 + Int64(digit))
    }
    return .seconds(value)
  }
}
