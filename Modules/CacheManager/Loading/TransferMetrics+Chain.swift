internal import CacheCore

extension TransferMetrics {
  /// The metrics of a response for which no request was sent.
  static let nothing = TransferMetrics(attempts: 0)

  /// Returns the cost of this transfer and the one after it together.
  ///
  /// Counts and durations add up. The properties of one response (``timeToHead``, the protocol, the connection) are those of the
  /// later response, if a request was sent for it.
  func followed(by later: TransferMetrics) -> TransferMetrics {
    guard attempts > 0 else { return later }
    guard later.attempts > 0 else { return self }
    return TransferMetrics(
      queued: Self.sum(queued, later.queued), nameLookup: Self.sum(nameLookup, later.nameLookup),
      connect: Self.sum(connect, later.connect), tls: Self.sum(tls, later.tls), timeToHead: later.timeToHead,
      total: Self.sum(total, later.total), bytesOnWire: bytesOnWire + later.bytesOnWire,
      bytesDecoded: bytesDecoded + later.bytesDecoded, protocolName: later.protocolName,
      isReusedConnection: later.isReusedConnection, redirects: redirects + later.redirects,
      attempts: attempts + later.attempts)
  }

  private static func sum(_ a: Duration?, _ b: Duration?) -> Duration? {
    guard let a else { return b }
    return a + (b ?? .zero)
  }
}
