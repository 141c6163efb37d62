import HTTPServing
import NIOCore

/// One response, for the log and the status page.
struct TrafficRecord: Sendable {
  var peer: SocketAddress?
  /// The request, or `nil` if the request was invalid.
  var request: ServerRequest?
  var status: Int
  var outcome: CacheOutcome
  /// The body bytes, without head and framing.
  var bodyBytes: Int64
  /// Whether the response was sent completely. False if the client or the origin ended it early.
  var isComplete: Bool
  /// The time from the end of the request's head to the end of the response.
  var duration: TimeAmount
}
