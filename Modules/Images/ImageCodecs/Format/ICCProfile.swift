/// The description of a color profile (ICC.1:2022 §9.2.41, and `desc` of version 2).
struct ICCProfile {
  let name: String?

  /// Returns `nil` if the bytes are not a complete profile.
  init?(_ bytes: [UInt8]) {
    guard bytes.count >= 132, Array(bytes[36..<40]) == Array("acsp".utf8), Self.isWhole(bytes) else { return nil }
    let text = Self.description(bytes)?.split(whereSeparator: \.isWhitespace).joined(separator: " ").prefix(80)
    name = text.flatMap { $0.isEmpty ? nil : String($0) }
  }

  /// Returns whether the bytes contain everything that the tag table refers to (§7.3).
  private static func isWhole(_ bytes: [UInt8]) -> Bool {
    guard let length = number(bytes, 0), length <= bytes.count, let count = number(bytes, 128), count <= 200 else { return false }
    return (0..<count).allSatisfy { entry in
      guard let offset = number(bytes, 136 + entry * 12), let size = number(bytes, 140 + entry * 12) else { return false }
      return offset <= length && size <= length - offset
    }
  }

  private static func description(_ bytes: [UInt8]) -> String? {
    guard let count = number(bytes, 128), count <= 200 else { return nil }
    for entry in 0..<count {
      let start = 132 + entry * 12
      guard start + 12 <= bytes.count else { return nil }
      guard Array(bytes[start..<start + 4]) == Array("desc".utf8) else { continue }
      guard let offset = number(bytes, start + 4), let length = number(bytes, start + 8), offset <= bytes.count,
        length <= bytes.count - offset
      else { return nil }
      return text(Array(bytes[offset..<offset + length]))
    }
    return nil
  }

  private static func text(_ tag: [UInt8]) -> String? {
    if tag.starts(with: "desc".utf8) {
      guard let length = number(tag, 8), length <= tag.count - 12 else { return nil }
      return String(decoding: tag[12..<12 + length].prefix { $0 != 0 }, as: UTF8.self)
    }
    // The first language, in UTF-16.
    guard tag.starts(with: "mluc".utf8), let length = number(tag, 20), let offset = number(tag, 24), offset <= tag.count,
      length <= tag.count - offset
    else { return nil }
    let units = stride(from: offset, to: offset + length - 1, by: 2).map { UInt16(tag[$0]) << 8 | UInt16(tag[$0 + 1]) }
    return String(decoding: units.prefix { $0 != 0 }, as: UTF16.self)
  }

  private static func number(_ bytes: [UInt8], _ start: Int) -> Int? {
    guard start >= 0, start + 4 <= bytes.count else { return nil }
    return bytes[start..<start + 4].reduce(0) { $0 << 8 | Int($1) }
  }
}
