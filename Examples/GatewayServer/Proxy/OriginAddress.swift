#if Gateway
/// Where the origin is: scheme and authority of `--origin`.
public struct OriginAddress: Hashable, Sendable, CustomStringConvertible {
  public var scheme: String
  public var authority: String

  /// nil when `text` is no http or https URL with a host and, but for a slash, nothing behind it: a path would have to be taken
  /// off every reference in what the origin answers.
  public init?(_ text: String) {
    guard let separator = text.firstRange(of: "://") else { return nil }
    scheme = text[..<separator.lowerBound].lowercased()
    var rest = text[separator.upperBound...]
    if rest.last == "/" { rest.removeLast() }
    guard scheme == "http" || scheme == "https", RequestTarget.isAuthority(String(rest)) else { return nil }
    authority = String(rest)
  }

  public var description: String { "\(scheme)://\(authority)" }
}
#endif
