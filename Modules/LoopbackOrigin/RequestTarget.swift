#if Origin
internal import HTTPTypes

/// A parsed request target (RFC 9112 §3.2).
struct RequestTarget: Hashable {
  var scheme: String
  /// The authority in the target, or `nil` in origin form, where the `Host` field has it.
  var authority: String?
  var path: String?

  /// Whether the form is used only for proxies.
  var isForProxy: Bool { authority != nil }

  init(_ text: String, method: HTTPRequest.Method) {
    if method == .connect {
      self.init(scheme: "https", authority: text, path: nil)
    } else if !text.hasPrefix("/"), let colon = text.firstIndex(of: ":"), text[colon...].hasPrefix("://") {
      let rest = text[colon...].dropFirst(3)
      let authority = rest.prefix { $0 != "/" && $0 != "?" }
      let path = rest.dropFirst(authority.count)
      self.init(
        scheme: text[..<colon].lowercased(), authority: String(authority), path: path.hasPrefix("/") ? String(path) : "/\(path)")
    } else {
      self.init(scheme: "http", authority: nil, path: text)
    }
  }

  private init(scheme: String, authority: String?, path: String?) {
    (self.scheme, self.authority, self.path) = (scheme, authority, path)
  }
}
#endif
