internal import CacheCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// Refuses drawings that point out of themselves, to a file or a host. No engine here follows such a reference; a drawing whose parts are missing would be shown as if
/// it were whole.
///
/// A reference to a part of the same drawing (`#name`) and to data (`data:`) is none of these, nor is a link (`<a href>`).
struct SVGReferences {
  private var rest: Substring.UTF8View

  static func check(_ data: Data) throws(CacheError) {
    // Lossy is right here: what is no UTF-8 is no part of a reference that could be told from others.
    var references = SVGReferences(rest: String(decoding: data, as: UTF8.self)[...].utf8)
    guard let target = references.first() else { return }
    throw CacheError(.decodingFailed, reason: "SVG: it points out of itself, to \(target.prefix(100)), which is not followed")
  }

  /// Where the first reference out of the drawing leads.
  private mutating func first() -> String? {
    while let open = rest.firstIndex(of: UInt8(ascii: "<")) {
      if let target = Self.style(rest[..<open]) { return target }
      rest = rest[open...]
      if rest.starts(with: "<!--".utf8) {
        skip(past: "-->")
      } else if rest.starts(with: "<![CDATA[".utf8) {
        let start = rest
        skip(past: "]]>")
        if let target = Self.style(start[..<rest.startIndex]) { return target }
      } else if rest.starts(with: "<!".utf8) {
        if let target = declaration() { return target }
      } else if let target = element() {
        return target
      }
    }
    return Self.style(rest)
  }

  private mutating func skip(past text: String) {
    let wanted = Array(text.utf8)
    while let start = rest.firstIndex(of: wanted[0]) {
      rest = rest[start...]
      if rest.starts(with: wanted) {
        rest = rest.dropFirst(wanted.count)
        return
      }
      rest = rest.dropFirst()
    }
    rest = rest[rest.endIndex...]
  }

  /// `<!ENTITY name SYSTEM "…">` reads a file. A document type's own identifier is read by nobody.
  private mutating func declaration() -> String? {
    let isEntity = rest.starts(with: "<!ENTITY".utf8)
    rest = rest.dropFirst(2)
    var words: [Substring] = []
    while let byte = rest.first, byte != UInt8(ascii: ">"), byte != UInt8(ascii: "[") {
      if let quoted = quoted() {
        words.append(quoted)
      } else if Self.isBlank(byte) {
        rest = rest.dropFirst()
      } else {
        let word = rest.prefix { !Self.isBlank($0) && $0 != UInt8(ascii: ">") && $0 != UInt8(ascii: "[") && !Self.isQuote($0) }
        words.append(Substring(word))
        rest = rest[word.endIndex...]
      }
    }
    rest = rest.dropFirst()
    guard isEntity, words.contains("SYSTEM") || words.contains("PUBLIC") else { return nil }
    return words.last.map(String.init)
  }

  private mutating func element() -> String? {
    rest = rest.dropFirst()
    let name = Self.local(word())
    while let byte = rest.first, byte != UInt8(ascii: ">") {
      let attribute = Self.local(word())
      if attribute.isEmpty {
        rest = rest.dropFirst()
        continue
      }
      rest = rest.drop { Self.isBlank($0) }
      guard rest.first == UInt8(ascii: "=") else { continue }
      rest = rest.dropFirst().drop { Self.isBlank($0) }
      guard let value = quoted() else { continue }
      if attribute == "href" || attribute == "src", name != "a", Self.leadsOut(value) {
        return String(value)
      }
      if let target = Self.style(value.utf8) { return target }
    }
    return nil
  }

  private mutating func word() -> Substring {
    let word = rest.prefix {
      !Self.isBlank($0) && $0 != UInt8(ascii: "=") && $0 != UInt8(ascii: ">") && $0 != UInt8(ascii: "/") && !Self.isQuote($0)
    }
    rest = rest[word.endIndex...]
    return Substring(word)
  }

  private mutating func quoted() -> Substring? {
    guard let quote = rest.first, Self.isQuote(quote) else { return nil }
    let value = rest.dropFirst().prefix { $0 != quote }
    rest = rest[value.endIndex...].dropFirst()
    return Substring(value)
  }

  /// Where `url(…)` or `@import` in a style leads, if it leads out.
  private static func style(_ text: Substring.UTF8View) -> String? {
    var rest = text
    while let index = rest.firstIndex(where: { $0 == UInt8(ascii: "(") || $0 == UInt8(ascii: "@") }) {
      let word = rest[..<index].suffix(3)
      let after = rest[index...]
      rest = after.dropFirst()
      if after.first == UInt8(ascii: "@") {
        if Substring(after.prefix(7)).lowercased() == "@import" { return String(Substring(after.prefix(100))) }
      } else if Substring(word).lowercased() == "url" {
        let target = rest.drop { isBlank($0) || isQuote($0) }.prefix { $0 != UInt8(ascii: ")") && !isQuote($0) }
        if leadsOut(Substring(target)) { return String(Substring(target)) }
      }
    }
    return nil
  }

  private static func leadsOut(_ target: Substring) -> Bool {
    let target = target.utf8.drop { isBlank($0) }
    return !target.isEmpty && target.first != UInt8(ascii: "#") && Substring(target.prefix(5)).lowercased() != "data:"
  }

  private static func local(_ name: Substring) -> String {
    (name.split(separator: ":", omittingEmptySubsequences: true).last ?? "").lowercased()
  }

  private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }
  private static func isQuote(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") }
}
