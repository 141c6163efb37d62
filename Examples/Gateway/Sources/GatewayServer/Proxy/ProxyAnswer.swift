public import CacheCore
public import HTTPTypes

/// A response to a client.
public struct ProxyAnswer: Sendable {
  /// The status, the reason phrase and the fields. Fields about one connection are left out when the response is written.
  public var head: HTTPResponse
  public var body: ResourceBody
  /// The part of the cache in it.
  public var outcome: CacheOutcome
  /// The source of the body, or `nil` without a cache.
  public var source: ResourceSource?
  /// Whether the connection is closed after the response.
  public var closes = false

  /// - Parameters:
  ///   - head: The status, the reason phrase and the fields.
  ///   - body: The body, which streams.
  ///   - outcome: The part of the cache in the response.
  ///   - source: The source of the body, or `nil` without a cache.
  public init(head: HTTPResponse, body: ResourceBody, outcome: CacheOutcome, source: ResourceSource? = nil) {
    (self.head, self.body, self.outcome, self.source) = (head, body, outcome, source)
  }
}

/// The part of the cache in a response, for the log and the status page.
public enum CacheOutcome: String, Sendable, CaseIterable {
  /// A stored response, without a request to the origin.
  case hit
  /// A stored response that the origin has confirmed.
  case revalidated
  /// A stored response that was served stale.
  case stale
  /// The response to an equal request at the same time.
  case collapsed
  /// The origin's response.
  case miss
  /// The origin's response, without a cache.
  case bypass
  /// An error response from the gateway, because the origin sent no valid response.
  case failed
  /// A response from the gateway itself: a refusal, an error, or a page.
  case local
}
