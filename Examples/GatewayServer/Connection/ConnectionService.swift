#if Gateway
import CacheCore
import NIOCore

/// What the connections of one port have in common.
struct ConnectionService: Sendable {
  var responder: any Responder
  /// Is told of every answer.
  var traffic: Traffic
  var limits = RequestLimits()
  /// How long a client may take for a head, for the next piece of a body, and for taking a piece of an answer; and how long a
  /// connection stays without a request.
  var clientTimeout = TimeAmount.seconds(60)
  /// How long a connection that was ended goes on being read, so that the client sees the last answer before it sees the end (RFC
  /// 9112 §9.6).
  var lingerTime = TimeAmount.seconds(2)
  /// How long an answer goes on for a client that has closed its side.
  var halfClosedTime = TimeAmount.seconds(5)
  /// How long a connection without a request stays when the server is to end: what is on its way by then is answered.
  var lastCallTime = TimeAmount.milliseconds(500)
  /// Bytes of a body that nobody wants and that are read all the same, to keep the connection.
  var drainLimit = 256 * 1024
  var clock: any CacheClock = SystemClock()
}
#endif
