#if Gateway
/// What has been answered since the start.
struct TrafficCounts: Sendable, Codable, Equatable {
  /// Answers of all kinds.
  var requests = 0
  /// Stored answers, nobody asked.
  var hits = 0
  /// Stored answers that the origin has confirmed.
  var revalidations = 0
  /// Stored answers shown stale.
  var stale = 0
  /// Answers to others' requests at the same moment.
  var collapsed = 0
  /// Answers of the origin, where a cache was asked.
  var misses = 0
  /// Answers of the origin, where none was.
  var bypasses = 0
  /// Errors in place of an answer of the origin's, which gave none.
  var failures = 0
  /// The gateway's own, and what was no request.
  var local = 0
  /// Answers with a status of 500 or more.
  var errors = 0
  /// Answers that broke off.
  var aborted = 0
  /// Body bytes of all answers.
  var bytesSent: Int64 = 0
  /// Body bytes that the origin did not have to send.
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
#endif
