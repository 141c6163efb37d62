#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A line of a list that people write: URLs, paths or keys.
///
/// A list is UTF-8, with a byte order mark or without one. Its lines end with LF, CRLF or CR. Blank lines and lines that begin
/// with `#` are comments.
public struct ListLine: Hashable, Sendable {
  /// The number of the line in the file, from 1.
  public var number: Int
  /// The text without the white space around it, or `nil` if the line is not UTF-8 or contains NUL.
  public var text: String?

  /// Creates a line.
  public init(number: Int, text: String?) { (self.number, self.text) = (number, text) }

  /// Returns the lines of a list, without comments.
  ///
  /// The lines of UTF-16 cannot be told apart, so a list with its byte order mark has one line, whose text is `nil`.
  public static func all(in list: Data) -> [ListLine] {
    guard !list.starts(with: [0xFF, 0xFE]), !list.starts(with: [0xFE, 0xFF]) else { return [ListLine(number: 1, text: nil)] }
    let bytes = [UInt8](list)
    let (lineFeed, carriageReturn) = (UInt8(ascii: "\n"), UInt8(ascii: "\r"))
    var lines: [ListLine] = []
    var start = 0
    var number = 0
    while start < bytes.count {
      number += 1
      let end = bytes[start...].firstIndex { $0 == lineFeed || $0 == carriageReturn } ?? bytes.count
      let line = bytes[start..<end].drop { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
      // A comment can be in another encoding.
      let text = line.first == UInt8(ascii: "#") ? "" : text(bytes[start..<end])
      if text.map({ !$0.isEmpty && !$0.hasPrefix("#") }) ?? true { lines.append(ListLine(number: number, text: text)) }
      start = end + (bytes[end...].starts(with: [carriageReturn, lineFeed]) ? 2 : 1)
    }
    return lines
  }

  private static func text(_ bytes: ArraySlice<UInt8>) -> String? {
    guard !bytes.contains(0), let text = String(validating: bytes, as: UTF8.self) else { return nil }
    // Each file has a mark of its own if several are joined.
    var line = Substring(text.unicodeScalars.first == "\u{FEFF}" ? text.unicodeScalars.dropFirst() : text.unicodeScalars[...])
    line = line.drop(while: \.isWhitespace)
    while line.last?.isWhitespace == true { line.removeLast() }
    return String(line)
  }
}
