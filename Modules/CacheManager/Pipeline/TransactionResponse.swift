internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The response of a ``CacheTransaction``, on its way to a load or to an HTTP caller.
struct TransactionResponse: Sendable {
  /// The head for an HTTP caller. For a load it is the head as stored or as received.
  var head: HTTPResponse
  /// The body. Bytes that a load has at its destination already are not in it.
  var body: ResourceBody
  /// The layer or the origin that the body is from.
  var source: ResourceSource
  /// The key and the metadata of the response in the cache, or `nil` if it may not be stored. A new response is stored when its
  /// body has been read.
  var stored: Candidate?
  /// The result of asking the origin about a stored response.
  var validation = RevalidationOutcome.notAttempted
  /// The `Cache-Status` of the response, without the cache's name.
  var status: CacheStatus
  /// Whether other waiters may have the response too.
  var isShareable = true
  /// The error that caused this stale response to be served.
  var fallbackReason: CacheError?
  /// The response of the origin, or `nil` if it was not asked or did not respond.
  var received: ReceivedResponse?
  /// The body as it is being recorded, or `nil` if it is not.
  var recording: RecordingBody?
  /// Whether the stored body was left in the durable store, because the stored transforms are enough.
  var isBodyLeft = false
  /// The encoded values of these transforms.
  var encoded: [String: Data] = [:]
  /// The part of the memory budget that the body uses.
  var reservation: MemoryReservation?
}

/// The head that came from the origin, with the request that it answers.
final class ReceivedResponse: Sendable {
  let sent: HTTPRequest
  let content: RequestContent
  let response: DownloadResponse
  let requestTime: Timestamp
  /// The uptime at which the request went out.
  let start: Duration
  let timeToHead: Duration
  let retry: RetryState
  /// The part of the memory budget that the body uses, or `nil` if it is not counted.
  let reservation: MemoryReservation?

  init(
    sent: HTTPRequest, content: RequestContent, response: DownloadResponse, requestTime: Timestamp, start: Duration,
    timeToHead: Duration, retry: RetryState, reservation: MemoryReservation?
  ) {
    (self.sent, self.content, self.response, self.requestTime) = (sent, content, response, requestTime)
    (self.start, self.timeToHead, self.retry, self.reservation) = (start, timeToHead, retry, reservation)
  }

  /// The cost of the response and of the requests before it. It is complete once the body has ended.
  func metrics(at uptime: Duration) -> TransferMetrics {
    var metrics = response.metrics()
    // An engine that does not measure gets what passed here.
    metrics.timeToHead = metrics.timeToHead ?? max(.zero, timeToHead - (metrics.queued ?? .zero))
    metrics.total = metrics.total ?? uptime - start
    metrics.attempts = max(1, metrics.attempts)
    return retry.spent.followed(by: metrics)
  }
}

/// The body of a request, for as many times as the request is sent.
enum RequestContent: Sendable {
  case none
  /// A body that can be made again for each sending.
  case reopened(RequestBody)
  /// A body that can be read once.
  case stream(ResourceBody)

  func open() async throws(CacheError) -> ResourceBody? {
    switch self {
    case .none: nil
    case .reopened(let body): try await body.opened()
    case .stream(let body): body
    }
  }

  /// The body for another sending.
  ///
  /// - Throws: An error if the first sending has consumed the body.
  func again(after status: Int) throws(CacheError) -> RequestContent {
    guard case .stream(let body) = self else { return self }
    guard let data = body.data else {
      throw CacheError(
        .malformedResponse,
        reason: "the response cannot be used, and the request cannot be sent again because its body was a stream", status: status)
    }
    return .stream(ResourceBody(data))
  }
}
