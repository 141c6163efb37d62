public import CacheCore
public import HTTPTypes

/// An HTTP response: a head, a body that streams, and how the cache obtained them.
public struct CachedResponse: Sendable {
  /// The status and the header fields. A stored response has `Age`. Every response has `Cache-Status`, unless the manager has no
  /// name.
  ///
  /// The fields of a forwarded response are the origin's, including those about its connection (RFC 9110 §7.6.1). A caller that
  /// forwards the response removes those.
  public var head: HTTPResponse
  /// The bytes. If the response is being stored, its bytes are stored as they are read. A caller that does not read to the end
  /// leaves nothing in the cache.
  public var body: ResourceBody
  /// The handling of the request by the cache (RFC 9211).
  public var status: CacheStatus
  /// The source of the body.
  public var source: ResourceSource
  /// The metrics of forwarding, which are complete once the body has ended. For a hit no request was sent, so there are no
  /// attempts and no bytes.
  public var metrics: @Sendable () -> TransferMetrics

  /// Creates a response from its parts, for fakes in tests.
  public init(
    head: HTTPResponse, body: ResourceBody, status: CacheStatus, source: ResourceSource,
    metrics: @escaping @Sendable () -> TransferMetrics = { TransferMetrics(attempts: 0) }
  ) {
    self.head = head
    self.body = body
    self.status = status
    self.source = source
    self.metrics = metrics
  }
}
