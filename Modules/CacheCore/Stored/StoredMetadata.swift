public import HTTPTypes

/// Everything about a stored answer but its bytes.
public struct StoredMetadata: Hashable, Sendable {
  /// The method, the URI and the selecting fields alone: a request's credentials and cookies never reach a store.
  public var request: HTTPRequest
  /// The answer's head, hop-by-hop fields removed.
  public var response: HTTPResponse
  /// Fields that came after the body.
  public var trailers: HTTPFields?
  /// When the request went out that brought, or last confirmed, this answer.
  public var requestTime: Timestamp
  /// When its answer came in. The store's own time to live counts from here, so a 304 restarts it.
  public var responseTime: Timestamp
  /// Bytes; nil while the body is still being written.
  public var bodyLength: Int64?
  /// The body's identity; a 304 keeps it.
  public var revision: Revision
  /// What a hit needs to know.
  public var facts: CachingFacts
  /// The time to live in the store; nil: the store's default.
  public var expiration: Expiration?

  /// Metadata of its parts.
  public init(
    request: HTTPRequest, response: HTTPResponse, trailers: HTTPFields? = nil, requestTime: Timestamp, responseTime: Timestamp,
    bodyLength: Int64? = nil, revision: Revision, facts: CachingFacts, expiration: Expiration? = nil
  ) {
    self.request = request
    self.response = response
    self.trailers = trailers
    self.requestTime = requestTime
    self.responseTime = responseTime
    self.bodyLength = bodyLength
    self.revision = revision
    self.facts = facts
    self.expiration = expiration
  }
}
