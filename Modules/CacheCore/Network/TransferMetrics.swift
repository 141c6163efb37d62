/// The measurements of a transfer, or of a chain of transfers. They mean the same for every engine.
///
/// A duration is `nil` if the step was not measured or did not occur. A reused connection, for example, needs no name lookup and
/// no handshake.
public struct TransferMetrics: Hashable, Sendable {
  /// The time before the request was sent, while it waited for a limit or for a free connection.
  public var queued: Duration?
  /// The duration of the host name lookup.
  public var nameLookup: Duration?
  /// The duration of the connection setup, including TLS.
  public var connect: Duration?
  /// The duration of the TLS handshake, which is part of ``connect``.
  public var tls: Duration?
  /// The time from the start of the request, after ``queued``, to the first byte of the response.
  public var timeToHead: Duration?
  /// The time from the call to the last byte of the body, or `nil` before that.
  public var total: Duration?
  /// The number of body bytes on the network, before content decoding, if the engine knows it.
  public var bytesOnWire: Int64
  /// The number of body bytes after content decoding.
  public var bytesDecoded: Int64
  /// The ALPN name of the protocol (RFC 7301): `http/1.1`, `h2` or `h3`.
  public var protocolName: String?
  /// Whether an existing connection was reused.
  public var isReusedConnection: Bool?
  /// The number of redirects that were followed.
  public var redirects: Int
  /// The number of requests that were sent for this response. It is 1 without retries.
  public var attempts: Int

  /// Creates metrics.
  public init(
    queued: Duration? = nil, nameLookup: Duration? = nil, connect: Duration? = nil, tls: Duration? = nil,
    timeToHead: Duration? = nil, total: Duration? = nil, bytesOnWire: Int64 = 0, bytesDecoded: Int64 = 0,
    protocolName: String? = nil, isReusedConnection: Bool? = nil, redirects: Int = 0, attempts: Int = 1
  ) {
    self.queued = queued
    self.nameLookup = nameLookup
    self.connect = connect
    self.tls = tls
    self.timeToHead = timeToHead
    self.total = total
    self.bytesOnWire = bytesOnWire
    self.bytesDecoded = bytesDecoded
    self.protocolName = protocolName
    self.isReusedConnection = isReusedConnection
    self.redirects = redirects
    self.attempts = attempts
  }
}
