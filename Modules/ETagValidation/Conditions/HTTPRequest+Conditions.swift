internal import CacheCore
internal import HTTPTypes

extension HTTPRequest {
  /// Whether the caller's request has its own conditions or a range (RFC 9110 §13.1, §14.2).
  var hasConditionsOrRange: Bool { headerFields.contains { Self.isCondition($0.name) } }

  private static func isCondition(_ name: HTTPField.Name) -> Bool {
    name == .ifNoneMatch || name == .ifModifiedSince || name == .range || name == .ifRange || name == .ifMatch
      || name == .ifUnmodifiedSince
  }

  /// Whether the caller revalidates a response of its own.
  var hasOwnCondition: Bool { headerFields.contains(.ifNoneMatch) || headerFields.contains(.ifModifiedSince) }

  /// Whether the method is safe, so that it changes nothing at the origin (RFC 9110 §9.2.1). An unknown method is not safe.
  var isSafe: Bool { method == .get || method == .head || method == .options || method == .trace }

  /// Returns the request without the caller's conditions and range.
  func withoutConditionsAndRange() -> HTTPRequest {
    guard hasConditionsOrRange else { return self }
    var request = self
    request.headerFields.removeAll { Self.isCondition($0.name) }
    return request
  }

  /// Returns the request with the conditions and the range of `original`, without those that a plan added.
  func withConditions(of original: HTTPRequest) -> HTTPRequest {
    var request = withoutConditionsAndRange()
    request.headerFields.append(contentsOf: original.headerFields.filter { Self.isCondition($0.name) })
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
