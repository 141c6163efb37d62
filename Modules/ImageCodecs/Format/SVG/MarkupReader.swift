/// A place in a text of markup, in whatever encoding has ASCII's characters in ASCII's places. It goes forward alone.
struct MarkupReader {
  let bytes: [UInt8]
  private(set) var next = 0

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  var current: UInt8? { next < bytes.count ? bytes[next] : nil }

  func isAt(_ text: StaticString) -> Bool {
    text.utf8CodeUnitCount <= bytes.count - next
      && text.withUTF8Buffer { text in text.indices.allSatisfy { bytes[next + $0] == text[$0] } }
  }

  mutating func skip(_ count: Int = 1) { next = min(next + count, bytes.count) }

  mutating func skipBlanks() { while let byte = current, byte.isBlank { next += 1 } }

  /// What stands before a byte, which is where it is then; all the rest, where there is none.
  mutating func take(upTo byte: UInt8) -> ArraySlice<UInt8> {
    let start = next
    while let current, current != byte { next += 1 }
    return bytes[start..<next]
  }

  /// What stands before a text, behind which it is then; all the rest, where there is none.
  mutating func take(past text: StaticString) -> ArraySlice<UInt8> {
    let start = next
    while next < bytes.count {
      if isAt(text) {
        defer { skip(text.utf8CodeUnitCount) }
        return bytes[start..<next]
      }
      next += 1
    }
    return bytes[start...]
  }

  /// A name, as far as no punctuation of markup follows; it may be empty.
  mutating func word() -> ArraySlice<UInt8> {
    let start = next
    while let byte = current, !byte.isBlank, !byte.isQuote, !Self.isEnd(byte) { next += 1 }
    return bytes[start..<next]
  }

  private static func isEnd(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "="), UInt8(ascii: ">"), UInt8(ascii: "/"), UInt8(ascii: "["), UInt8(ascii: "]"): true
    default: false
    }
  }

  /// What stands between quotes; nil: no quote is here.
  mutating func quoted() -> ArraySlice<UInt8>? {
    guard let quote = current, quote.isQuote else { return nil }
    next += 1
    let value = take(upTo: quote)
    skip()
    return value
  }
}

extension UInt8 {
  var isBlank: Bool { self == 0x20 || (0x09...0x0D).contains(self) }
  var isQuote: Bool { self == UInt8(ascii: "\"") || self == UInt8(ascii: "'") }
  /// In lower case, where it is a letter of ASCII.
  var lowercased: UInt8 { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(self) ? self | 0x20 : self }
}

extension Collection<UInt8> {
  /// Whether it begins so, whatever the case of ASCII's letters; `text` is in lower case.
  func startsWithoutCase(_ text: StaticString) -> Bool {
    let start = prefix(text.utf8CodeUnitCount)
    return text.withUTF8Buffer { start.count == $0.count && zip(start, $0).allSatisfy { $0.lowercased == $1 } }
  }

  /// As text, for a reason: the first hundred bytes.
  var excerpt: String { String(decoding: prefix(100), as: UTF8.self) }
}
