internal import CacheCore
internal import Foundation

#if !canImport(FoundationNetworking)
extension TaskTimes {
  /// Creates the times of a task's last transaction, which received the response.
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

/// The platform's measurements of one transaction, as times. Each may be missing.
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

  /// Adds the values that only the platform knows. Values of our own clock are not replaced.
  func complete(_ metrics: inout TransferMetrics) {
    if !isReusedConnection {
      metrics.nameLookup = Self.duration(nameLookupStart, nameLookupEnd)
      metrics.connect = Self.duration(connectStart, connectEnd)
      metrics.tls = Self.duration(tlsStart, tlsEnd)
    }
    // The time before the first step of the transaction is the wait for a pooled connection.
    let firstStep = isReusedConnection ? requestStart : [nameLookupStart, connectStart, requestStart].compactMap { $0 }.min()
    metrics.queued = Self.duration(fetchStart, firstStep)
    metrics.protocolName = protocolName
    metrics.isReusedConnection = isReusedConnection
    if bodyBytesOnWire > 0 { metrics.bytesOnWire = bodyBytesOnWire }
  }

  /// Returns a duration, or `nil` if a time is missing or the clock was set back in between.
  private static func duration(_ start: Date?, _ end: Date?) -> Duration? {
    guard let start, let end, end >= start else { return nil }
    return .seconds(end.timeIntervalSince(start))
  }
}
