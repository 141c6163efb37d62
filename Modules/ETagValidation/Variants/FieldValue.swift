/// The normalization of field values (RFC 9111 §4.1). It works on bytes, because a value need not be UTF-8.
enum FieldValue {
  /// Returns the lines as one value, without surrounding blanks. The members of a list are trimmed and joined by `, `, and empty
  /// ones are omitted. Quoted text is unchanged.
  static func normalized(_ lines: [[UInt8]], isList: Bool) -> [UInt8] {
    let members = isList ? lines.flatMap(members(of:)) : lines.map { trimmed($0[...]) }
    return Array(members.joined(separator: [UInt8(ascii: ","), 0x20]))
  }

  /// Returns whether the field lists weighted alternatives (RFC 9110 §12.5).
  static func isPreference(_ name: String) -> Bool {
    name == "accept" || name == "accept-charset" || name == "accept-encoding" || name == "accept-language"
  }

  /// Returns the members of all lines.
  static func members(of lines: [[UInt8]]) -> [ArraySlice<UInt8>] { lines.flatMap(members(of:)) }

  private static func members(of line: [UInt8]) -> [ArraySlice<UInt8>] {
    var members: [ArraySlice<UInt8>] = []
    var start = line.startIndex
    var quoted = false
    var escaped = false
    for (index, byte) in line.enumerated() {
      if escaped {
        escaped = false
      } else if byte == UInt8(ascii: "\"") {
        quoted.toggle()
      } else if byte == UInt8(ascii: "\\"), quoted {
        escaped = true
      } else if byte == UInt8(ascii: ","), !quoted {
        members.append(trimmed(line[start..<index]))
        start = index + 1
      }
    }
    members.append(trimmed(line[start...]))
    return members.filter { !$0.isEmpty }
  }

  private static func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    var bytes = bytes
    while let first = bytes.first, isBlank(first) { bytes.removeFirst() }
    while let last = bytes.last, isBlank(last) { bytes.removeLast() }
    return bytes
  }

  private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
}
