/// The rule for storing responses with a given status (RFC 9110 §15.1, RFC 9111 §3).
enum StatusRule {
  /// The response is stored always, while it is fresh, as a part, or never.
  case always, whileFresh, part, never

  /// Returns the rule for a status code. Errors, temporary redirects and unknown status codes are stored only for their stated
  /// lifetime, so that a cache does not serve an outdated 404 without revalidation.
  init(_ code: Int) {
    self =
      switch code {
      case 200, 203, 204, 300, 301, 308: .always
      case 206: .part
      case 304: .never
      // These concern the proxy, precondition, range or expectation of this request, not the resource.
      case 407, 412, 416, 417: .never
      case 200...599: .whileFresh
      default: .never
      }
  }

  /// Returns whether a status code is heuristically cacheable (RFC 9110 §15.1).
  static func isHeuristicallyCacheable(_ code: Int) -> Bool {
    [200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501].contains(code)
  }

  /// Returns whether this cache understands the caching requirements of a status, as `must-understand` requires (RFC 9111
  /// §5.2.2.3). These are the codes of RFC 9110 that it stores.
  static func isUnderstood(_ code: Int) -> Bool {
    switch code {
    case 200...205, 300...303, 305, 307, 308, 400...417, 421, 422, 426, 500...505: true
    default: false
    }
  }
}
