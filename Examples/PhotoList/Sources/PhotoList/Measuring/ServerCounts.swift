/// The number of requests and responses that a server has counted.
struct ServerCounts: Codable, Equatable, Sendable {
  var requests = 0
  /// The number of responses with status 304.
  var notModified = 0
  /// The number of body bytes sent.
  var bodyBytes = 0

  static func - (later: Self, earlier: Self) -> Self {
    Self(
      requests: later.requests - earlier.requests, notModified: later.notModified - earlier.notModified,
      bodyBytes: later.bodyBytes - earlier.bodyBytes)
  }
}
