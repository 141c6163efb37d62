public import HTTPTypes

/// Everything about a stored answer but its bytes.
public struct StoredMetadata: Hashable, Sendable {
  /// The method, the URI and the selecting fields alone: a request's credentials and cookies never reach a store.
  public var request: HTTPRequest {
    _read { yield boxed.content.heads.box.heads.request }
    _modify { yield &boxed.content.heads.values.request }
  }
  /// The answer's head, hop-by-hop fields removed.
  public var response: HTTPResponse {
    _read { yield boxed.content.heads.box.heads.response }
    _modify { yield &boxed.content.heads.values.response }
  }
  /// Fields that came after the body.
  public var trailers: HTTPFields? {
    _read { yield boxed.content.heads.box.heads.trailers }
    _modify { yield &boxed.content.heads.values.trailers }
  }
  /// When the request went out that brought, or last confirmed, this answer.
  public var requestTime: Timestamp {
    _read { yield boxed.content.requestTime }
    _modify { yield &boxed.content.requestTime }
  }
  /// When its answer came in. The store's own time to live counts from here, so a 304 restarts it.
  public var responseTime: Timestamp {
    _read { yield boxed.content.responseTime }
    _modify { yield &boxed.content.responseTime }
  }
  /// Bytes; nil while the body is still being written.
  public var bodyLength: Int64? {
    _read { yield boxed.content.bodyLength }
    _modify { yield &boxed.content.bodyLength }
  }
  /// The body's identity; a 304 keeps it.
  public var revision: Revision {
    _read { yield boxed.content.revision }
    _modify { yield &boxed.content.revision }
  }
  /// What a hit needs to know.
  public var freshness: Freshness {
    _read { yield boxed.content.freshness }
    _modify { yield &boxed.content.freshness }
  }
  /// The time to live in the store; nil: the store's default.
  public var expiration: Expiration? {
    _read { yield boxed.content.expiration }
    _modify { yield &boxed.content.expiration }
  }

  /// Metadata of its parts.
  public init(
    request: HTTPRequest, response: HTTPResponse, trailers: HTTPFields? = nil, requestTime: Timestamp, responseTime: Timestamp,
    bodyLength: Int64? = nil, revision: Revision, freshness: Freshness, expiration: Expiration? = nil
  ) {
    boxed = Boxed(
      Content(
        heads: HeldHeads(MessageHeads(request: request, response: response, trailers: trailers)), requestTime: requestTime,
        responseTime: responseTime, bodyLength: bodyLength, revision: revision, freshness: freshness, expiration: expiration))
  }

  /// Metadata whose heads are read when somebody asks for them.
  init(
    heads: EncodedHeads, requestTime: Timestamp, responseTime: Timestamp, bodyLength: Int64?, revision: Revision,
    freshness: Freshness, expiration: Expiration?
  ) {
    boxed = Boxed(
      Content(
        heads: .encoded(heads), requestTime: requestTime, responseTime: responseTime, bodyLength: bodyLength,
        revision: revision, freshness: freshness, expiration: expiration))
  }

  public static func == (a: Self, b: Self) -> Bool { a.boxed.isSame(as: b.boxed) || a.boxed.content == b.boxed.content }

  public func hash(into hasher: inout Hasher) { hasher.combine(boxed.content) }

  private struct Content: Hashable, Sendable {
    var heads: HeldHeads
    var requestTime: Timestamp
    var responseTime: Timestamp
    var bodyLength: Int64?
    var revision: Revision
    var freshness: Freshness
    var expiration: Expiration?
  }

  private var boxed: Boxed<Content>
}
