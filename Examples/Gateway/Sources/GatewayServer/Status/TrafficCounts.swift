/// The number of responses since the start, by their outcome.
struct TrafficCounts: Sendable, Codable, Equatable {
  /// All responses.
  var requests = 0
  /// Stored responses, without a request to the origin.
  var hits = 0
  /// Stored responses that the origin has confirmed.
  var revalidations = 0
  /// Stored responses that were served stale.
  var stale = 0
  /// Responses to equal requests at the same time.
  var collapsed = 0
  /// The origin's responses, with a cache.
  var misses = 0
  /// The origin's responses, without a cache.
  var bypasses = 0
  /// Error responses because the origin sent no valid response.
  var failures = 0
  /// Responses from the gateway itself, including those to invalid requests.
  var local = 0
  /// Responses with a status of 500 or more.
  var errors = 0
  /// Responses that were not sent completely.
  var aborted = 0
  /// The body bytes of all responses.
  var bytesSent: Int64 = 0
  /// The body bytes that the origin did not have to send.
  var bytesSaved: Int64 = 0

  mutating func add(_ record: TrafficRecord) {
    requests += 1
    bytesSent += record.bodyBytes
    if record.status >= 500 { errors += 1 }
    if !record.isComplete { aborted += 1 }
    switch record.outcome {
    case .hit: hits += 1
    case .revalidated: revalidations += 1
    case .stale: stale += 1
    case .collapsed: collapsed += 1
    case .miss: misses += 1
    case .bypass: bypasses += 1
    case .failed: failures += 1
    case .local: local += 1
    }
    if [.hit, .revalidated, .stale, .collapsed].contains(record.outcome) { bytesSaved += record.bodyBytes }
  }
}
