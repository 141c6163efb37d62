#if Server
public import NIOCore

/// The limits and timeouts of the connections of one port.
public struct ConnectionSettings: Sendable {
  /// The number of connections that are open at the same time. Further clients wait until one is closed.
  public var maximumConnections = 1_000
  /// The time that a client has to send a head, to send the next piece of a body, and to read a piece of a response. Also the
  /// time that a connection without a request stays open.
  public var clientTimeout = TimeAmount.seconds(60)
  /// The time for which a client that has closed its side may wait for the next byte of its response. Then its request is
  /// cancelled.
  ///
  /// Almost every such client is gone, and only a write would show it. nginx, Envoy and Go give such clients no time at all.
  public var halfClosedTime = TimeAmount.seconds(1)
  /// The time that a connection without a request stays open during shutdown, so that requests already sent, and the next request
  /// of a client whose last response promised to keep the connection open, get a response.
  public var shutdownIdleTime = TimeAmount.seconds(2)
  var limits = RequestLimits()
  /// The time that the head of a response waits for the first bytes of its body. A body that fails in this time becomes an error
  /// response, and not a reset. Responses whose body is available do not wait.
  var headDelay = TimeAmount.milliseconds(10)
  /// The time in which bytes are still read from a connection that is closed for writing, so that no reset overtakes the last
  /// response (RFC 9112 §9.6).
  var lingerTime = TimeAmount.seconds(2)
  /// The number of unwanted body bytes that are read and dropped in order to keep the connection open.
  var drainLimit = 256 * 1024

  /// Creates the default settings.
  public init() {}

  /// Creates the default settings and changes some of them.
  public init(_ change: (inout Self) -> Void) { change(&self) }
}
#endif
