import HTTPServing

/// The address of the origin: the scheme and the authority of `--origin`.
public struct OriginAddress: Hashable, Sendable, CustomStringConvertible {
  public var scheme: String
  public var authority: String

  /// Creates an address from an http or https URL with a host. Returns `nil` for other texts, and for a URL with a path.
  ///
  /// A path is not supported because the gateway would have to remove it from every link in the origin's responses.
  public init?(_ text: String) {
    guard let separator = text.firstRange(of: "://") else { return nil }
    scheme = text[..<separator.lowerBound].lowercased()
    var rest = text[separator.upperBound...]
    if rest.last == "/" { rest.removeLast() }
    guard scheme == "http" || scheme == "https", Authority.isValid(String(rest)) else { return nil }
    authority = String(rest)
  }

  public var description: String { "\(scheme)://\(authority)" }
}
