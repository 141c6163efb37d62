public import HTTPTypes

/// What an engine is asked: one hop. Redirects, retries, decoding limits and resumption go around it.
public struct DownloadRequest: Sendable {
  /// Method, URL and fields, as they go out.
  public var head: HTTPRequest
  /// What is sent with it, streamed. Read once: who sends the request a second time needs another one.
  public var body: ResourceBody?
  /// How urgent it is; may rise meanwhile.
  public var priority: LoadPriority
  /// How long nothing may come before the engine gives up; nil: the engine's default.
  public var idleTimeout: Duration?
  /// How long head and body together may take, from the call on; nil: as long as bytes keep coming.
  public var timeout: Duration?
  /// The networks that may be used. Heeded where the platform tells them apart (Apple's); what is not allowed fails with
  /// ``CacheError/Code/networkRestricted``.
  public var networkAccess: NetworkAccess
  /// Counted from 1: how often the resource has been asked for, this time included.
  public var attempt: Int

  /// A request for one hop.
  public init(
    head: HTTPRequest, body: ResourceBody? = nil, priority: LoadPriority = LoadPriority(), idleTimeout: Duration? = nil,
    timeout: Duration? = nil, networkAccess: NetworkAccess = .all, attempt: Int = 1
  ) {
    self.head = head
    self.body = body
    self.priority = priority
    self.idleTimeout = idleTimeout
    self.timeout = timeout
    self.networkAccess = networkAccess
    self.attempt = attempt
  }
}

/// An engine's answer, returned as soon as the head is there. To reject it is to cancel its body unread.
public struct DownloadResponse: Sendable {
  /// Status and fields. When the engine decoded the body (`Content-Encoding`), the fields describe the decoded bytes.
  public var head: HTTPResponse
  /// The bytes. Throws ``CacheError/Code/truncatedBody`` when fewer come than were announced.
  public var body: ResourceBody
  /// What was measured up to now; complete once the body has ended.
  public var metrics: @Sendable () -> TransferMetrics

  /// An answer of its parts.
  public init(
    head: HTTPResponse, body: ResourceBody, metrics: @escaping @Sendable () -> TransferMetrics = { TransferMetrics() }
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

  /// Where a load that asks this engine does best to run: where its answers arrive, so that no answer has to change threads on
  /// its way. Asked once for each load; nil, the default: the cooperative pool.
  ///
  /// A decorator hands its base's on.
  var preferredExecutor: (any TaskExecutor)? { get }
}

extension Downloader {
  public var preferredExecutor: (any TaskExecutor)? { nil }
}
