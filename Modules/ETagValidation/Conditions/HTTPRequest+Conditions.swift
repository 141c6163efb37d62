internal import CacheCore
internal import HTTPTypes

extension HTTPRequest {
  /// Whether the caller asks for a part, or under a condition, of its own (RFC 9110 §13.1, §14.2).
  var hasConditionsOrRange: Bool { headerFields.contains { Self.isCondition($0.name) } }

  private static func isCondition(_ name: HTTPField.Name) -> Bool {
    name == .ifNoneMatch || name == .ifModifiedSince || name == .range || name == .ifRange || name == .ifMatch
      || name == .ifUnmodifiedSince
  }

  /// Whether the caller has an answer that it asks about.
  var hasOwnCondition: Bool { headerFields.contains(.ifNoneMatch) || headerFields.contains(.ifModifiedSince) }

  /// Whether it can't change anything at the origin (RFC 9110 §9.2.1). A method that is not known may.
  var isSafe: Bool { method == .get || method == .head || method == .options || method == .trace }

  /// The same question without the caller's own conditions and range.
  func withoutConditionsAndRange() -> HTTPRequest {
    guard hasConditionsOrRange else { return self }
    var request = self
    request.headerFields.removeAll { Self.isCondition($0.name) }
    return request
  }

  /// The request with the conditions and the range that `original` has, in place of its own: without what a plan added.
  func withConditions(of original: HTTPRequest) -> HTTPRequest {
    var request = withoutConditionsAndRange()
    request.headerFields.append(contentsOf: original.headerFields.filter { Self.isCondition($0.name) })
    return request
  }

  /// The request, so that the caches on the way don't answer it either (RFC 9111 §5.2.1.4), unless the caller speaks to them
  /// already.
  func pastAllCaches() -> HTTPRequest {
    guard !headerFields.contains(.cacheControl), headerFields.hasRoom(for: 1) else { return self }
    var request = self
    request.headerFields[.cacheControl] = "no-cache"
    return request
  }
}
