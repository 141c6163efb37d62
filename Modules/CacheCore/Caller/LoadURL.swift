#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// The URL of an event. The text has no user information, but it includes the query. Use ``withoutQuery`` for logs.
///
/// The text is computed on demand, because most observers only count and a hit in memory takes less time than the text.
public struct LoadURL: Hashable, Sendable, CustomStringConvertible {
  private let url: URL

  /// Creates the URL of an event, for tests.
  public init(_ url: URL) { self.url = url }

  /// The URL without user information. A very long URL, such as a `data:` URL, is shortened.
  public var description: String { url.address }

  /// The URL without user information, query and fragment, which may contain signatures and tokens. For a `data:` URL, the part
  /// before the comma.
  public var withoutQuery: String {
    let text = url.address
    let end: Character = url.scheme?.lowercased() == "data" ? "," : "?"
    return String(text.prefix { $0 != end && $0 != "#" })
  }
}

extension URL {
  /// The URL as text for errors and events, without user information. Very long URLs, such as `data:` URLs, are shortened.
  package var address: String {
    var text = absoluteString
    if user() != nil, let colon = text.firstIndex(of: ":"), let at = text[colon...].firstIndex(of: "@") {
      text = "\(text[...colon])//\(text[text.index(after: at)...])"
    }
    return text.utf8.count <= 2_048 ? text : "\(text.prefix(80))… (\(text.utf8.count) bytes)"
  }

  /// Returns a text that is not a URL for an error. The text cannot be parsed, so all of it between the scheme and the last `@`
  /// counts as user information.
  static func address(ofInvalid text: String) -> String {
    guard let at = text.lastIndex(of: "@") else { return text }
    let scheme = text[..<at].firstRange(of: "//").map { text[..<$0.upperBound] } ?? ""
    return "\(scheme)\(text[text.index(after: at)...])"
  }
}
