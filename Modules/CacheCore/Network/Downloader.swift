public import HTTPTypes

/// A request to a downloader for a single exchange. Wrappers around the downloader handle redirects, retries, size limits and
/// resumption.
public struct DownloadRequest: Sendable {
  /// The method, the URL and the fields that are sent.
  public var head: HTTPRequest
  /// The content to send, as a stream. It can be read only once, so a repeated request needs a new body.
  public var body: ResourceBody?
  /// The priority, which may rise while the request waits or runs.
  public var priority: LoadPriority
  /// The maximum time without received data, or `nil` for the engine's default.
  public var idleTimeout: Duration?
  /// The maximum duration of the whole exchange, from the call to the end of the body, or `nil` for no limit. Wrappers pass on
  /// the time that is left. With zero or less, the exchange fails with ``CacheError/Code/timedOut``.
  public var timeout: Duration?
  /// The networks that may be used. A request that needs another network fails with ``CacheError/Code/networkRestricted``. Only
  /// Apple platforms distinguish networks.
  public var networkAccess: NetworkAccess
  /// The number of this request for the resource, counted from 1.
  public var attempt: Int
  /// The largest body, in bytes, that the downloader may collect before it returns, or 0 to return at the head.
  ///
  /// A caller that needs the whole body then waits once for both, and reads ``ResourceBody/data``. It is a permission, which a
  /// downloader may ignore. A downloader that uses it still returns at the head in these cases:
  /// - The length of the body is unknown or greater.
  /// - The response is not successful (2xx) or is a part (206), because its reader may reject it at the head.
  ///
  /// It may also return any body up to this size that has already arrived completely. If a body fails while it is collected, the
  /// response is returned with the bytes so far as a stream, which then throws the error.
  public var collectUpTo: Int

  /// Creates a request.
  public init(
    head: HTTPRequest, body: ResourceBody? = nil, priority: LoadPriority = LoadPriority(), idleTimeout: Duration? = nil,
    timeout: Duration? = nil, networkAccess: NetworkAccess = .all, attempt: Int = 1, collectUpTo: Int = 0
  ) {
    self.head = head
    self.body = body
    self.priority = priority
    self.idleTimeout = idleTimeout
    self.timeout = timeout
    self.networkAccess = networkAccess
    self.attempt = attempt
    self.collectUpTo = collectUpTo
  }
}

extension HTTPResponse {
  /// Whether a downloader that uses ``DownloadRequest/collectUpTo`` returns this response at the end of its body.
  ///
  /// - Parameters:
  ///   - limit: The largest body, in bytes, that the downloader may collect.
  ///   - length: The length of the body in bytes, or `nil` if it is unknown.
  package func isCollected(upTo limit: Int, length: Int64?) -> Bool {
    guard limit > 0, let length, (0...Int64(limit)).contains(length) else { return false }
    return length == 0 || status.kind == .successful && status != .partialContent
  }
}

extension CacheError {
  /// The error for a body that ended too early.
  ///
  /// - Parameters:
  ///   - received: The number of bytes that were received.
  ///   - expected: The number of bytes that the head announced, or `nil` if it announced none.
  package static func truncated(received: Int64, expected: Int64?, underlying: (any Error)? = nil) -> CacheError {
    let reason =
      if let expected {
        "the body ended after \(received) of \(expected) bytes"
      } else {
        "the body was cut off after \(received) bytes"
      }
    return CacheError(.truncatedBody, reason: reason, underlying: underlying)
  }

  /// The error for a body with more bytes than the head announced.
  package static func overlong(expected: Int64) -> CacheError {
    CacheError(.malformedResponse, reason: "the body is longer than the announced \(expected) bytes")
  }
}

/// A downloader's response, returned as soon as its header arrives, or with its whole body (``DownloadRequest/collectUpTo``). To
/// reject it, cancel its body without reading it.
public struct DownloadResponse: Sendable {
  /// The status and the fields. If the engine decoded the body (`Content-Encoding`), the fields describe the decoded bytes.
  public var head: HTTPResponse
  /// The body. It throws ``CacheError/Code/truncatedBody`` if it is shorter than announced.
  public var body: ResourceBody
  /// Returns the metrics so far. They are complete when the body has ended.
  public var metrics: @Sendable () -> TransferMetrics

  /// Creates a response.
  public init(
    head: HTTPResponse, body: ResourceBody, metrics: @escaping @Sendable () -> TransferMetrics = { TransferMetrics() }
  ) {
    self.head = head
    self.body = body
    self.metrics = metrics
  }
}

/// An HTTP engine that sends one request and returns one response. Any status is a response, including 304 and 404. It does not
/// follow redirects.
///
/// A download ends with ``CacheError/cancelled`` when the calling task is cancelled. Its errors contain no URL, because the
/// caller knows it.
public protocol Downloader: Component {
  /// Sends the request and returns when the header of the response has arrived, or when its body has
  /// (``DownloadRequest/collectUpTo``).
  func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse

  /// The executor on which a load that uses this engine runs best, or `nil` for the cooperative pool. The default is `nil`.
  ///
  /// An engine returns the executor on which its responses arrive, so that they do not change threads. It is read once for each
  /// load. A wrapper returns the executor of its base.
  var preferredExecutor: (any TaskExecutor)? { get }
}

extension Downloader {
  public var preferredExecutor: (any TaskExecutor)? { nil }
}
