internal import CacheCore
internal import HTTPTypes

/// The members of a comma-separated list in one field line (RFC 9110 §5.6.1). Members are trimmed, empty ones are omitted, and
/// commas in quoted strings do not separate.
///
/// An unclosed quote is an ordinary character, so that it cannot hide the members after it (`private="x, no-store`). Reading
/// takes linear time for any bytes, and allocates nothing. A list and its members are valid only as long as the line is.
struct FieldList: Sequence, IteratorProtocol {
  private var rest: UnsafeBufferPointer<UInt8>
  /// Whether no unclosed quote has been read.
  private(set) var honorsQuotes = true

  init(_ line: UnsafeBufferPointer<UInt8>) { rest = line }

  mutating func next() -> UnsafeBufferPointer<UInt8>? {
    while !rest.isEmpty {
      let member = take().trimmingBlanks()
      if !member.isEmpty { return member }
    }
    return nil
  }

  private mutating func take() -> UnsafeBufferPointer<UInt8> {
    let line = rest
    var end = 0
    while end < line.count {
      let byte = line[end]
      if byte == UInt8(ascii: ",") {
        rest = UnsafeBufferPointer(rebasing: line[(end + 1)...])
        return UnsafeBufferPointer(rebasing: line[..<end])
      }
      end += 1
      if byte == UInt8(ascii: "\""), honorsQuotes {
        // After one unclosed quote, later quotes are ignored. Searching for the end of each would take quadratic time.
        if let close = line.closingQuote(from: end) { end = close + 1 } else { honorsQuotes = false }
      }
    }
    rest = UnsafeBufferPointer(rebasing: line[end...])
    return line
  }
}

extension UnsafeBufferPointer<UInt8> {
  /// Returns the end of the quoted string that was opened just before `start` (RFC 9110 §5.6.4).
  func closingQuote(from start: Int) -> Int? {
    var position = start
    while position < count {
      if self[position] == UInt8(ascii: "\"") { return position }
      position += self[position] == UInt8(ascii: "\\") ? 2 : 1
    }
    return nil
  }

  /// Returns whether these bytes are the given lowercase name, in any case (RFC 9110 §5.1).
  func isName(_ canonical: String) -> Bool {
    guard count == canonical.utf8.count else { return false }
    var canonical = canonical
    return canonical.withUTF8 { isLowercased($0.baseAddress) }
  }

  /// Returns whether these bytes are a lowercase text of the same length, in any case.
  func isLowercased(_ lowercase: UnsafePointer<UInt8>?) -> Bool {
    guard let lowercase else { return isEmpty }
    for (index, byte) in enumerated() {
      let isCapital = byte &- UInt8(ascii: "A") < 26
      guard lowercase[index] == (isCapital ? byte | 0x20 : byte) else { return false }
    }
    return true
  }

  /// The bytes as a text in lower case.
  var lowercased: String { String(decoding: self, as: UTF8.self).lowercased() }
}

extension HTTPField {
  /// The bytes of the value. Strings would be repaired, and two different invalid UTF-8 values could then be equal.
  var bytes: [UInt8] { withUnsafeBytesOfValue { Array($0) } }

  /// Returns a field with the same bytes and another name.
  func renamed(_ name: Name) -> HTTPField {
    var copy = self
    copy.name = name
    return copy
  }
}

extension HTTPFields {
  /// Replaces all fields of a name by one field.
  mutating func replace(_ name: HTTPField.Name, with field: HTTPField) {
    self[fields: name] = [field]
  }
}

extension HTTPFields {
  /// Sets a field to one value at the position of its first line, so that the order of the other fields is unchanged.
  mutating func set(_ name: HTTPField.Name, _ value: String) {
    guard contains(name) || hasCapacity(for: 1) else { return }
    self[name] = value
  }

  /// Sets `Age` to a number of whole seconds and replaces any received value (RFC 9111 §5.1).
  mutating func setAge(_ age: Duration) { set(.age, String(age.components.seconds)) }
}
