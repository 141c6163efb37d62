public import CacheCore
public import HTTPTypes

/// An answer as HTTP has it: a head, a body that streams, and how the cache came by them.
public struct CachedResponse: Sendable {
  /// Status and fields, with `Age` where the answer is a stored one, and with `Cache-Status` unless the manager bears no name.
  ///
  /// Of an answer that was forwarded they are the origin's, those about its connection too (RFC 9110 §7.6.1): who hands it on
  /// drops them.
  public var head: HTTPResponse
  /// The bytes. Those of an answer that is being stored are stored as they are read: who does not read to the end leaves nothing
  /// in the cache.
  public var body: ResourceBody
  /// What the cache did (RFC 9211).
  public var status: CacheStatus
  /// Where the body comes from.
  public var source: ResourceSource
  /// What forwarding cost; complete once the body has ended. For a hit nothing was sent: no attempts, no bytes.
  public var metrics: @Sendable () -> TransferMetrics

  /// An answer of its parts: for fakes in tests.
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
