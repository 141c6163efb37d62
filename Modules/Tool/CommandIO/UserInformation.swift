/// The user name and the password in a URL (RFC 3986 §3.2.1). Commands do not print them, because output is often pasted into
/// reports and kept in logs.
public enum UserInformation {
  /// Returns a text in which the URLs have no user information.
  public static func removed(from text: String) -> String {
    guard text.utf8.contains(UInt8(ascii: "@")) else { return text }
    var rest = text[...]
    var result = ""
    while let start = rest.firstRange(of: "://")?.upperBound {
      result += rest[..<start]
      rest = rest[start...]
      let authority = rest.prefix { !$0.isWhitespace && !"/?#\"".contains($0) }
      if let at = authority.lastIndex(of: "@") { rest = rest[rest.index(after: at)...] }
    }
    return result + rest
  }

  /// Returns a URL as it was typed, without user information. The text need not be a valid URL.
  public static func removed(fromURL text: String) -> String {
    guard let colon = text.firstIndex(of: ":"), !["data", "file"].contains(text[..<colon].lowercased()) else { return text }
    let start = text[text.index(after: colon)...].drop { "/\\".contains($0) }.startIndex
    let authority = text[start...].prefix { !"/?#".contains($0) }
    var end = authority.lastIndex(of: "@")
    // If a password has one of these characters, its part before that character is where the port should be.
    let port = authority.split(separator: ":", omittingEmptySubsequences: false).dropFirst().last ?? ""
    if end == nil, !port.hasSuffix("]"), !port.allSatisfy(\.isNumber) { end = text[start...].lastIndex(of: "@") }
    return end.map { "\(text[..<start])\(text[text.index(after: $0)...])" } ?? text
  }
}
