#if Origin
/// The counters of an origin or of one of its paths.
///
/// Counters are increased before the bytes are sent, so a client that has received a response finds it counted.
public struct OriginCounters: Sendable, Hashable {
  /// The number of requests that were received completely.
  public var requests = 0
  /// The number of connections accepted since the last reset. Zero in the counters of a path.
  public var connectionsAccepted = 0
  /// The number of open connections, which a reset does not change. Zero in the counters of a path.
  public var openConnections = 0
  /// The number of requests with `If-None-Match` or `If-Modified-Since`.
  public var conditionalRequests = 0
  /// The number of 304 responses.
  public var notModified = 0
  /// The number of body bytes passed to the kernel, without chunk framing.
  public var bodyBytesSent = 0
  /// The number of received body bytes, without chunk framing. They are counted on arrival, including those of incomplete and
  /// refused requests.
  public var requestBodyBytes = 0
  /// The number of all bytes passed to the kernel: heads, framing and bodies.
  public var bytesSent = 0
  /// The number of all bytes received. For a path: the bytes up to the end of its requests that belong to no earlier request.
  public var bytesReceived = 0

  /// Creates counters that are zero.
  public init() {}
}
#endif
