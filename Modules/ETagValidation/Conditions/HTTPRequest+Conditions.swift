internal import CacheCore
internal import HTTPTypes

extension HTTPRequest {
  /// Whether the caller's request has its own conditions or a range (RFC 9110 §13.1, §14.2).
  var hasConditionsOrRange: Bool {
    let fields = headerFields
    return (0..<fields.count).contains { Self.isCondition(fields[$0].name.canonicalName) }
  }

  private static func isCondition(_ name: String) -> Bool {
    switch name.utf8.count {
    case 5: name == "range"
    case 8: name == "if-match" || name == "if-range"
    case 13: name == "if-none-match"
    case 17: name == "if-modified-since"
    case 19: name == "if-unmodified-since"
    default: false
    }
  }

  /// Whether the caller revalidates a response of its own.
  var hasOwnCondition: Bool { headerFields.contains(.ifNoneMatch) || headerFields.contains(.ifModifiedSince) }

  /// Whether the method is safe, so that it changes nothing at the origin (RFC 9110 §9.2.1). An unknown method is not safe.
  var isSafe: Bool { method == .get || method == .head || method == .options || method == .trace }

  /// Returns the request without the caller's conditions and range.
  func withoutConditionsAndRange() -> HTTPRequest {
    var request = self
    request.headerFields = headerFields.removing(Self.isCondition)
    return request
  }

  /// Returns the request with the conditions and the range of `original`, without those that a plan added.
  func withConditions(of original: HTTPRequest) -> HTTPRequest {
    var request = withoutConditionsAndRange()
    request.headerFields.append(contentsOf: original.headerFields.filter { Self.isCondition($0.name.canonicalName) })
    return request
  }

  /// Returns the request with `Cache-Control: no-cache`, so that no intermediate cache serves it (RFC 9111 §5.2.1.4). A
  /// `Cache-Control` field of the caller is left unchanged.
  func pastAllCaches() -> HTTPRequest {
    guard !headerFields.contains(.cacheControl), headerFields.hasCapacity(for: 1) else { return self }
    var request = self
    request.headerFields[.cacheControl] = "no-cache"
    return request
  }
}
