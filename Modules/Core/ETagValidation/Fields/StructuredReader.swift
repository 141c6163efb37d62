internal import CacheCore

/// A reader for the items of structured fields (RFC 8941 §4.2, RFC 9651 §4.2). It returns `nil` at the first unexpected byte.
struct StructuredReader {
  private let bytes: [UInt8]
  private var position = 0

  init(_ bytes: some Sequence<UInt8>) { self.bytes = Array(bytes) }

  var isAtEnd: Bool { position == bytes.count }
  private var next: UInt8? { position < bytes.count ? bytes[position] : nil }

  mutating func skip(_ matches: (UInt8) -> Bool) {
    while let byte = next, matches(byte) { position += 1 }
  }

  mutating func take(_ byte: UInt8) -> Bool {
    guard next == byte else { return false }
    position += 1
    return true
  }

  private mutating func taken(while matches: (UInt8) -> Bool) -> ArraySlice<UInt8> {
    let start = position
    skip(matches)
    return bytes[start..<position]
  }

  mutating func key() -> String? {
    guard let first = next, Self.isLower(first) || first == UInt8(ascii: "*") else { return nil }
    let text = taken { Self.isLower($0) || Self.isDigit($0) || [0x5F, 0x2D, 0x2E, 0x2A].contains($0) }
    return String(decoding: text, as: UTF8.self)
  }

  /// Reads the value after a key: `=` and a value, or nothing, which means true. Parameters are skipped.
  mutating func memberValue() -> StructuredDictionary.Value? {
    guard take(UInt8(ascii: "=")) else { return skipParameters() ? .boolean(true) : nil }
    guard let value = next == UInt8(ascii: "(") ? innerList() : item(), skipParameters() else { return nil }
    return value
  }

  private mutating func skipParameters() -> Bool {
    while take(UInt8(ascii: ";")) {
      skip { $0 == 0x20 }
      guard key() != nil else { return false }
      if take(UInt8(ascii: "=")), item() == nil { return false }
    }
    return true
  }

  private mutating func innerList() -> StructuredDictionary.Value? {
    position += 1
    while !isAtEnd {
      skip { $0 == 0x20 }
      if take(UInt8(ascii: ")")) { return .other }
      guard item() != nil, skipParameters(), next == 0x20 || next == UInt8(ascii: ")") else { return nil }
    }
    return nil
  }

  private mutating func item() -> StructuredDictionary.Value? {
    guard let first = next else { return nil }
    switch first {
    case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return number()
    case UInt8(ascii: "\""): return quoted().map { .string($0) }
    case UInt8(ascii: ":"): return enclosed(by: UInt8(ascii: ":"))
    case UInt8(ascii: "?"):
      position += 1
      if take(UInt8(ascii: "1")) { return .boolean(true) }
      return take(UInt8(ascii: "0")) ? .boolean(false) : nil
    case UInt8(ascii: "@"):
      position += 1
      if case .integer = number() { return .other }
      return nil
    case UInt8(ascii: "%"):
      position += 1
      return next == UInt8(ascii: "\"") && quoted() != nil ? .other : nil
    default: return token()
    }
  }

  private mutating func number() -> StructuredDictionary.Value? {
    let isNegative = take(UInt8(ascii: "-"))
    let digits = taken(while: Self.isDigit)
    guard !digits.isEmpty, digits.count <= 15 else { return nil }
    if take(UInt8(ascii: ".")) {
      let fraction = taken(while: Self.isDigit)
      return digits.count <= 12 && (1...3).contains(fraction.count) ? .other : nil
    }
    let value = digits.reduce(Int64(0)) { $0 * 10 + Int64($1 - UInt8(ascii: "0")) }
    return .integer(isNegative ? -value : value)
  }

  private mutating func quoted() -> String? {
    position += 1
    var text: [UInt8] = []
    while let byte = next {
      position += 1
      switch byte {
      case UInt8(ascii: "\""): return String(decoding: text, as: UTF8.self)
      case UInt8(ascii: "\\"):
        guard let escaped = next, escaped == UInt8(ascii: "\"") || escaped == UInt8(ascii: "\\") else { return nil }
        position += 1
        text.append(escaped)
      case 0x20...0x7E: text.append(byte)
      default: return nil
      }
    }
    return nil
  }

  /// Reads a byte sequence: base64 between colons.
  private mutating func enclosed(by mark: UInt8) -> StructuredDictionary.Value? {
    position += 1
    skip { Self.isLower($0 | 0x20) || Self.isDigit($0) || [0x2B, 0x2F, 0x3D].contains($0) }
    return take(mark) ? .other : nil
  }

  private mutating func token() -> StructuredDictionary.Value? {
    guard let first = next, Self.isLower(first | 0x20) || first == UInt8(ascii: "*") else { return nil }
    skip { $0.isTokenByte || $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: "/") }
    return .other
  }

  private static func isLower(_ byte: UInt8) -> Bool { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) }
  private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }
}

/// A dictionary of structured fields (RFC 8941 §3.2, with the types that RFC 9651 adds). It is parsed as strictly as §4.2
/// requires: any error makes the whole dictionary invalid.
///
/// Parameters and inner lists are skipped, because no directive uses them. Parsing takes linear time.
struct StructuredDictionary {
  enum Value: Equatable {
    case integer(Int64)
    case boolean(Bool)
    case string(String)
    /// A type that no directive uses: a token, a decimal, bytes, a date, a display string or an inner list.
    case other
  }

  /// The members, ordered by the first occurrence of their keys. The last value of a key applies.
  private(set) var members: [(key: String, value: Value)] = []

  /// Creates a dictionary from all lines of a field, or returns `nil` if they are invalid.
  init?(lines: [[UInt8]]) {
    var reader = StructuredReader(lines.joined(separator: [UInt8(ascii: ",")]))
    reader.skip { $0 == 0x20 }
    while !reader.isAtEnd {
      guard let key = reader.key(), let value = reader.memberValue() else { return nil }
      if let index = members.firstIndex(where: { $0.key == key }) {
        members[index].value = value
      } else {
        // There are fewer directives than that, and the search for each key among the others must not become slow.
        guard members.count < 64 else { return nil }
        members.append((key, value))
      }
      reader.skip { $0 == 0x20 || $0 == 0x09 }
      if reader.isAtEnd { return }
      guard reader.take(UInt8(ascii: ",")) else { return nil }
      reader.skip { $0 == 0x20 || $0 == 0x09 }
      // A trailing comma is invalid.
      if reader.isAtEnd { return nil }
    }
  }
}
