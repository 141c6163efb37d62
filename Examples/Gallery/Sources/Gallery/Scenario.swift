/// The state of the cache and of the origin at the start of a run of loads.
enum Scenario: String, CaseIterable, Codable, Sendable {
  /// The state after the previous run, unchanged.
  case warm
  /// The cache is empty.
  case cold
  /// Every cached response is stale, and the origin has not changed.
  case stale
  /// Every cached response is stale, and a third of the images have changed on the origin.
  case changed
  /// Every cached response is stale, and the origin refuses connections.
  case offline
}
