public import HTTPTypes

/// The metadata of a stored response: everything except its bytes.
///
/// Request and response are large, so they are read and changed in place. Each change copies the metadata once.
public struct StoredMetadata: Hashable, Sendable {
  /// The method, the URI and the selecting fields of the request. Credentials and cookies of a request never reach a store.
  public var request: HTTPRequest {
    _read { yield boxed.content.heads.box.heads.request }
    _modify { yield &boxed.content.heads.values.request }
  }
  /// The header of the response, without hop-by-hop fields.
  public var response: HTTPResponse {
    _read { yield boxed.content.heads.box.heads.response }
    _modify { yield &boxed.content.heads.values.response }
  }
  /// The fields after the body.
  public var trailers: HTTPFields? {
    _read { yield boxed.content.heads.box.heads.trailers }
    _modify { yield &boxed.content.heads.values.trailers }
  }
  /// The time at which the request for this response, or for its last confirmation, was sent.
  public var requestTime: Timestamp {
    get { boxed.content.requestTime }
    set { boxed.content.requestTime = newValue }
  }
  /// The time at which the response to that request was received. The store's own time to live starts at this time, so a 304
  /// restarts it.
  public var responseTime: Timestamp {
    get { boxed.content.responseTime }
    set { boxed.content.responseTime = newValue }
  }
  /// The length of the body in bytes, or `nil` while the body is being written.
  public var bodyLength: Int64? {
    get { boxed.content.bodyLength }
    set { boxed.content.bodyLength = newValue }
  }
  /// The identity of the body. A 304 leaves it unchanged.
  public var revision: Revision {
    get { boxed.content.revision }
    set { boxed.content.revision = newValue }
  }
  /// The freshness, which is all that a hit needs.
  public var freshness: Freshness {
    get { boxed.content.freshness }
    set { boxed.content.freshness = newValue }
  }
  /// The time to live in the store, or `nil` for the store's default.
  public var expiration: Expiration? {
    get { boxed.content.expiration }
    set { boxed.content.expiration = newValue }
  }

  /// Creates metadata.
  public init(
    request: HTTPRequest, response: HTTPResponse, trailers: HTTPFields? = nil, requestTime: Timestamp, responseTime: Timestamp,
    bodyLength: Int64? = nil, revision: Revision, freshness: Freshness, expiration: Expiration? = nil
  ) {
    boxed = Boxed(
      Content(
        heads: HeldHeads(MessageHeads(request: request, response: response, trailers: trailers)), requestTime: requestTime,
        responseTime: responseTime, bodyLength: bodyLength, revision: revision, freshness: freshness, expiration: expiration))
  }

  /// Creates metadata whose heads are decoded at their first use.
  init(
    heads: EncodedHeads, requestTime: Timestamp, responseTime: Timestamp, bodyLength: Int64?, revision: Revision,
    freshness: Freshness, expiration: Expiration?
  ) {
    boxed = Boxed(
      Content(
        heads: .encoded(heads), requestTime: requestTime, responseTime: responseTime, bodyLength: bodyLength,
        revision: revision, freshness: freshness, expiration: expiration))
  }

  /// Returns the metadata after a soft purge at `now`. See ``Freshness/markedStale(at:)``.
  public func markedStale(at now: Timestamp) -> StoredMetadata {
    var stale = self
    stale.freshness = freshness.markedStale(at: now)
    return stale
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

/// The message heads of stored metadata, either as values or as encoded bytes that are decoded at first use.
///
/// Creating strings for every field takes as long as reading a small file, and many uses of a store need only the freshness.
enum HeldHeads: Sendable {
  case values(MessageHeadsBox)
  case encoded(EncodedHeads)

  init(_ heads: MessageHeads) { self = .values(MessageHeadsBox(heads)) }

  /// The decoded heads, decoded now if necessary. They are a reference, so that reading one field neither copies the heads nor
  /// runs a coroutine for each level.
  var box: MessageHeadsBox {
    switch self {
    case .values(let box): box
    case .encoded(let encoded): encoded.decoded
    }
  }

  var values: MessageHeads {
    get { box.heads }
    _modify {
      var changed = box.heads
      defer { self = .values(MessageHeadsBox(changed)) }
      yield &changed
    }
  }
}

extension HeldHeads: Hashable {
  static func == (a: Self, b: Self) -> Bool {
    switch (a, b) {
    case (.values(let a), .values(let b)) where a === b: true
    case (.encoded(let a), .encoded(let b)) where a === b: true
    default: a.values == b.values
    }
  }

  func hash(into hasher: inout Hasher) { hasher.combine(values) }
}

/// The request, the response and the trailers of a stored response.
struct MessageHeads: Hashable, Sendable {
  var request: HTTPRequest
  var response: HTTPResponse
  var trailers: HTTPFields?
}

/// Message heads behind a reference, so that changing a time does not copy them.
final class MessageHeadsBox: Sendable {
  let heads: MessageHeads

  init(_ heads: MessageHeads) { self.heads = heads }
}

/// Encoded message heads that have been checked.
final class EncodedHeads: Sendable {
  /// The positions of the parts.
  struct HeadRanges {
    var request: Range<Int>
    var response: Range<Int>
    var trailers: Range<Int>?
  }

  private let bytes: [UInt8]
  private let ranges: HeadRanges
  // `AtomicLazyReference` would look up its generic metadata at each use.
  private let made = Lock<MessageHeadsBox?>(nil)

  init(_ bytes: UnsafeRawBufferPointer, _ ranges: HeadRanges) {
    self.bytes = Array(bytes)
    self.ranges = ranges
  }

  /// The decoded heads. Two concurrent callers may both decode them; the first result is kept.
  var decoded: MessageHeadsBox {
    if let made = made.withLock({ $0 }) { return made }
    let heads = bytes.withUnsafeBytes { bytes in
      func part(_ place: Range<Int>) -> RawByteReader { RawByteReader(UnsafeRawBufferPointer(rebasing: bytes[place])) }
      var (request, response) = (part(ranges.request), part(ranges.response))
      var trailers = ranges.trailers.map(part)
      return MessageHeads(request: request.request(), response: response.response(), trailers: trailers?.fields())
    }
    return made.withLock { made in
      let first = made ?? MessageHeadsBox(heads)
      made = first
      return first
    }
  }
}
