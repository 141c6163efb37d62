#if Origin
/// What an origin, or one path of it, has seen and sent.
///
/// Numbers are raised before the bytes they are about leave, so a client that has read an answer finds it counted.
public struct OriginCounters: Sendable, Hashable {
  /// Requests that were read whole.
  public var requests = 0
  /// Connections accepted since the last reset. Zero in the counters of a path.
  public var connectionsAccepted = 0
  /// Connections open now; a reset leaves it. Zero in the counters of a path.
  public var openConnections = 0
  /// Requests with `If-None-Match` or `If-Modified-Since`.
  public var conditionalRequests = 0
  /// Answers 304.
  public var notModified = 0
  /// Body bytes handed to the kernel, chunk framing not included.
  public var bodyBytesSent = 0
  /// Body bytes of requests, without chunk framing, counted as they come: those of unfinished and of refused requests too.
  public var requestBodyBytes = 0
  /// All bytes handed to the kernel: heads, framing and bodies.
  public var bytesSent = 0
  /// All bytes read. For a path: what came on the connection up to the end of its request and belongs to no earlier request.
  public var bytesReceived = 0

  /// All zero.
  public init() {}
}
#endif
