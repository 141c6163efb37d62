internal import CacheCore

extension TransferMetrics {
  /// Nobody was asked.
  static let nothing = TransferMetrics(attempts: 0)

  /// What this transfer and the one after it cost together. Counts and durations add up; what belongs to one answer
  /// (``timeToHead``, the protocol, the connection) is the later one's, as far as somebody was asked for it.
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
