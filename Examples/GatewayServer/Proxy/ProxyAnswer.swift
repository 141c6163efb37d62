#if Gateway
public import CacheCore
public import HTTPTypes

/// An answer on its way to the client.
public struct ProxyAnswer: Sendable {
  /// Status, reason phrase and fields; those about one connection are dropped when it is written.
  public var head: HTTPResponse
  public var body: ResourceBody
  /// The part of the cache in it.
  public var outcome: CacheOutcome
  /// The source of the body, or `nil` without a cache.
  public var source: ResourceSource?
  /// Whether the connection ends with it.
  public var closes = false

  /// - Parameters:
  ///   - head: status, reason phrase and fields.
  ///   - body: streamed.
  ///   - outcome: what the cache had to do with it.
  ///   - source: where a cache's body comes from.
  public init(head: HTTPResponse, body: ResourceBody, outcome: CacheOutcome, source: ResourceSource? = nil) {
    (self.head, self.body, self.outcome, self.source) = (head, body, outcome, source)
  }
}

/// The part of the cache in a response, for the log and the status page.
public enum CacheOutcome: String, Sendable, CaseIterable {
  /// A stored answer, and nobody was asked.
  case hit
  /// A stored answer that the origin has confirmed.
  case revalidated
  /// A stored answer, shown although it is stale.
  case stale
  /// The answer to another client's request at the same moment.
  case collapsed
  /// The origin's answer.
  case miss
  /// No cache was asked.
  case bypass
  /// The origin was asked and gave no answer, or none that makes sense: the gateway says so in its place.
  case failed
  /// The gateway's own word: a refusal, an error, a page.
  case local
}
#endif
