/// The content of the status page.
struct StatusDocument: Sendable, Codable, Equatable {
  /// The number and size of the stored entries. A value is `nil` for a store that does not exist or cannot be read.
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
