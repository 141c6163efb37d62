#if Gateway
/// What the status page tells.
struct StatusDocument: Sendable, Codable, Equatable {
  /// Of the store; nil where nothing is stored.
  struct Store: Sendable, Codable, Equatable {
    var memoryEntries: Int?
    var memoryBytes: Int64?
    var diskEntries: Int?
    var diskBytes: Int64?
  }

  var origin: String
  /// `private`, `shared`, or `off`.
  var mode: String
  var uptimeSeconds: Int64
  var traffic: TrafficCounts
  var store: Store?
}
#endif
