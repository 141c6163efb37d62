public import HTTPTypes

/// What an engine is asked: one hop. Redirects, retries, decoding limits and resumption go around it.
public struct DownloadRequest: Sendable {
  /// Method, URL and fields, as they go out.
  public var head: HTTPRequest
  /// What is sent with it.
  public var body: Body?
  /// How urgent it is; may rise meanwhile.
  public var priority: LoadPriority
  /// How long nothing may come before the engine gives up; nil: the engine's default.
  public var idleTimeout: Duration?
  /// Whether an engine that shares transfers may answer this request and an equal one with one transfer. A manager says no: it has decided already who
  /// may have whose answer.
  public var mayShare: Bool

  /// A request for one hop.
  public init(
    head: HTTPRequest, body: Body? = nil, priority: LoadPriority = LoadPriority(), idleTimeout: Duration? = nil,
    mayShare: Bool = true
  ) {
    self.head = head
    self.body = body
    self.priority = priority
    self.idleTimeout = idleTimeout
    self.mayShare = mayShare
  }
}

/// What an engine measured of one transfer.
public struct TransferMetrics: Hashable, Sendable {
  /// Body bytes as they crossed the network, before any content decoding, as far as the engine can tell.
  public var bytesOnWire: Int64
  /// From the request's start to its head; nil: not yet, or unknown.
  public var timeToHead: Duration?

  /// Metrics of their parts.
  public init(bytesOnWire: Int64 = 0, timeToHead: Duration? = nil) {
    self.bytesOnWire = bytesOnWire
    self.timeToHead = timeToHead
  }
}

/// An engine's answer, returned as soon as the head is there. To reject it is to cancel its body unread.
public struct DownloadResponse: Sendable {
  /// Status and fields. When the engine decoded the body (`Content-Encoding`), the fields describe the decoded bytes.
  public var head: HTTPResponse
  /// The bytes. Throws ``CacheError/Code/truncatedBody`` when fewer come than were announced.
  public var body: Body
  /// What was measured up to now; complete once the body has ended.
  public var metrics: @Sendable () -> TransferMetrics

  /// An answer of its parts.
  public init(
    head: HTTPResponse, body: Body, metrics: @escaping @Sendable () -> TransferMetrics = { TransferMetrics() }
  ) {
    self.head = head
    self.body = body
    self.metrics = metrics
  }
}

/// An HTTP engine: one request, one answer, every status an answer (304 and 404 too), redirects not followed.
///
/// Ends when the calling task is cancelled, with ``CacheError/cancelled``. Errors carry no URL: who asked knows it.
public protocol Downloader: Component {
  /// Sends the request and returns when the answer's head is there.
  func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse
}
