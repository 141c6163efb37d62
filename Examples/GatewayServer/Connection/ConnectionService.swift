#if Gateway
import CacheCore
import NIOCore

/// The settings and the responder that all connections of one port share.
struct ConnectionService: Sendable {
  var responder: any Responder
  /// The recorder of every response.
  var traffic: Traffic
  var limits = RequestLimits()
  /// The time that a client has to send a head, to send the next piece of a body, and to read a piece of a response. Also the
  /// time that a connection without a request stays open.
  var clientTimeout = TimeAmount.seconds(60)
  /// The time that the gateway still reads from a connection that it has closed for writing, so that no reset overtakes the last
  /// response (RFC 9112 §9.6).
  var lingerTime = TimeAmount.seconds(2)
  /// The time that a response may take for a client that has closed its side.
  var halfClosedTime = TimeAmount.seconds(5)
  /// The time that a connection without a request stays open during shutdown, so that requests already sent get a response.
  var lastCallTime = TimeAmount.milliseconds(500)
  /// The number of unwanted body bytes that are read and dropped in order to keep the connection open.
  var drainLimit = 256 * 1024
  var clock: any CacheClock = SystemClock()
}
#endif
