#if Gateway
/// The state in which the next run of loads finds the cache and the origin.
enum Scenario: String, CaseIterable, Codable, Sendable {
  /// Nothing is changed, so that a run shows the state that the last one has left.
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
#endif
