#if Gateway
import NIOCore

/// One answer, for the log and the status page.
struct TrafficRecord: Sendable {
  var peer: SocketAddress?
  /// nil: what came was no request.
  var request: RequestHead?
  var status: Int
  var outcome: CacheOutcome
  /// Without heads and framing.
  var bodyBytes: Int64
  /// False when client or origin broke it off.
  var isComplete: Bool
  /// From the end of the request's head to the end of the answer.
  var duration: TimeAmount
}
#endif
