/// The first element of a markup text, after a byte order mark, a declaration, comments and a document type.
struct MarkupStart {
  /// The name of the first element, in lower case and without a prefix such as `svg:`. If no element is found, the name
  /// of the document type.
  let element: String

  init?(_ bytes: [UInt8]) {
    var rest = bytes[...]
    if rest.starts(with: [0xEF, 0xBB, 0xBF]) { rest = rest.dropFirst(3) }
    var documentType: String?
    while true {
      rest = rest.drop { $0 == 0x20 || (0x09...0x0D).contains($0) }
      guard rest.first == UInt8(ascii: "<") else { break }
      if rest.starts(with: "<!--".utf8) {
        guard let end = Self.end(of: "-->", in: rest) else { break }
        rest = rest[end...]
      } else if rest.starts(with: "<?".utf8) {
        guard let end = Self.end(of: "?>", in: rest) else { break }
        rest = rest[end...]
      } else if rest.starts(with: "<!".utf8) {
        documentType = Self.name(rest.dropFirst(2).drop { $0 != 0x20 }.drop { $0 == 0x20 })
        guard let end = Self.endOfDocumentType(rest) else { break }
        rest = rest[end...]
      } else {
        let name = Self.name(rest.dropFirst())
        if name.isEmpty { break }
        element = name
        return
      }
    }
    guard let documentType, !documentType.isEmpty else { return nil }
    element = documentType
  }

  private static func name(_ bytes: ArraySlice<UInt8>) -> String {
    let name = bytes.prefix { byte in
      UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte | 0x20 || UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte
        || byte == UInt8(ascii: ":")
        || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
    }
    let text = String(decoding: name, as: UTF8.self).lowercased()
    return text.split(separator: ":").last.map(String.init) ?? ""
  }

  private static func end(of text: String, in bytes: ArraySlice<UInt8>) -> Int? {
    let wanted = Array(text.utf8)
    guard bytes.count >= wanted.count else { return nil }
    return (bytes.startIndex...bytes.endIndex - wanted.count).first { bytes[$0...].starts(with: wanted) }.map {
      $0 + wanted.count
    }
  }

  /// A document type may contain declarations in brackets, which may contain ">".
  private static func endOfDocumentType(_ bytes: ArraySlice<UInt8>) -> Int? {
    var depth = 0
    for index in bytes.indices {
      switch bytes[index] {
      case UInt8(ascii: "["): depth += 1
      case UInt8(ascii: "]"): depth -= 1
      case UInt8(ascii: ">") where depth <= 0: return index + 1
      default: continue
      }
    }
    return nil
  }
}
