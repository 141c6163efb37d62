/// What was measured of one transfer, or of a chain of them: the same for every engine.
///
/// A duration that is nil was not measured, or did not happen: a connection that was used again needs no name and no handshake.
public struct TransferMetrics: Hashable, Sendable {
  /// How long it waited for its turn before it was sent: in a queue of limits, or for a free connection.
  public var queued: Duration?
  /// Looking the host's name up.
  public var nameLookup: Duration?
  /// Connecting, TLS included.
  public var connect: Duration?
  /// The TLS handshake, a part of ``connect``.
  public var tls: Duration?
  /// From the request's start, after ``queued``, to its head: the first byte.
  public var timeToHead: Duration?
  /// From the call to the body's last byte; nil before it.
  public var total: Duration?
  /// Body bytes as they crossed the network, before any content decoding, as far as the engine can tell.
  public var bytesOnWire: Int64
  /// Body bytes as they were handed over, after content decoding.
  public var bytesDecoded: Int64
  /// The protocol's name as ALPN has it (RFC 7301): `http/1.1`, `h2`, `h3`.
  public var protocolName: String?
  /// Whether a connection that was there already was used.
  public var isReusedConnection: Bool?
  /// How many redirects were followed.
  public var redirects: Int
  /// How many requests were sent in order to have one answer: 1 where nothing was sent again.
  public var attempts: Int

  /// Metrics of their parts.
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
