internal import CacheCore
internal import Foundation

#if !canImport(FoundationNetworking)
extension TaskTimes {
  /// The last transaction of a task: the one that brought the answer.
  init?(_ metrics: URLSessionTaskMetrics) {
    guard let last = metrics.transactionMetrics.last else { return nil }
    fetchStart = last.fetchStartDate
    nameLookupStart = last.domainLookupStartDate
    nameLookupEnd = last.domainLookupEndDate
    connectStart = last.connectStartDate
    connectEnd = last.connectEndDate
    tlsStart = last.secureConnectionStartDate
    tlsEnd = last.secureConnectionEndDate
    requestStart = last.requestStartDate
    responseStart = last.responseStartDate
    bodyBytesOnWire = last.countOfResponseBodyBytesReceived
    protocolName = last.networkProtocolName
    isReusedConnection = last.isReusedConnection
  }
}
#endif

/// What a platform measured of one transaction, as it says it: moments, of which each may be missing.
struct TaskTimes: Hashable, Sendable {
  var fetchStart: Date?
  var nameLookupStart: Date?
  var nameLookupEnd: Date?
  var connectStart: Date?
  var connectEnd: Date?
  var tlsStart: Date?
  var tlsEnd: Date?
  var requestStart: Date?
  var responseStart: Date?
  var bodyBytesOnWire: Int64 = 0
  var protocolName: String?
  var isReusedConnection = false

  /// Fills in what only the platform knows. Where both measured something, our own clock's word stays.
  func complete(_ metrics: inout TransferMetrics) {
    if !isReusedConnection {
      metrics.nameLookup = Self.duration(nameLookupStart, nameLookupEnd)
      metrics.connect = Self.duration(connectStart, connectEnd)
      metrics.tls = Self.duration(tlsStart, tlsEnd)
    }
    // What is before the first step of the transaction is the wait for a connection of the pool.
    let firstStep = isReusedConnection ? requestStart : [nameLookupStart, connectStart, requestStart].compactMap { $0 }.min()
    metrics.queued = Self.duration(fetchStart, firstStep)
    metrics.protocolName = protocolName
    metrics.isReusedConnection = isReusedConnection
    if bodyBytesOnWire > 0 { metrics.bytesOnWire = bodyBytesOnWire }
  }

  /// Nil where a moment is missing, or a clock that was set in between made nonsense of both.
  private static func duration(_ start: Date?, _ end: Date?) -> Duration? {
    guard let start, let end, end >= start else { return nil }
    return .seconds(end.timeIntervalSince(start))
  }
}
