/// What a status lets a cache do (RFC 9110 §15.1, RFC 9111 §3).
enum StatusRule {
  /// Stored in any case; stored while its lifetime lasts; stored as the part that it is; never stored.
  case always, whileFresh, part, never

  /// Errors and temporary redirects, also of statuses that nobody has defined, are stored for the lifetime that they state and no
  /// longer: nobody shall see yesterday's 404 from a cache that does not ask.
  init(_ code: Int) {
    self =
      switch code {
      case 200, 203, 204, 300, 301, 308: .always
      case 206: .part
      case 304: .never
      // About this request's proxy, precondition, range or expectation, not about the resource.
      case 407, 412, 416, 417: .never
      case 200...599: .whileFresh
      default: .never
      }
  }

  /// RFC 9110 §15.1.
  static func isHeuristicallyCacheable(_ code: Int) -> Bool {
    [200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501].contains(code)
  }

  /// Whether this cache knows what the status asks of it, which `must-understand` demands (RFC 9111 §5.2.2.3): those of RFC 9110
  /// that it stores.
  static func isUnderstood(_ code: Int) -> Bool {
    switch code {
    case 200...205, 300...303, 305, 307, 308, 400...417, 421, 422, 426, 500...505: true
    default: false
    }
  }
}
