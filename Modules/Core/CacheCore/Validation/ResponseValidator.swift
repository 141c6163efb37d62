public import HTTPTypes

/// The rules of HTTP caching as pure, synchronous functions. A validator receives the time and never uses a file, a socket or a
/// clock.
///
/// ```swift
/// configuration.validator = ETagValidator()
/// ```
///
/// ``plan(_:policy:stored:now:)`` decides whether to use a stored response or which request to send.
/// ``judge(_:to:sent:fallback:stored:requestTime:now:revision:)`` decides what the response changes in the store.
/// ``reply(to:from:now:)`` returns the part of a stored response that the client receives.
///
/// Every lookup in memory compares `id`, so a validator stores it and does not make it anew each time.
public protocol ResponseValidator: Component {
  /// Returns the plan for a request, before any request is sent.
  ///
  /// It is not called for a plain memory hit: a request without fields, under ``LoadPolicy/standard``, if a single response
  /// without selecting fields is stored, which a validator with an equal identity has accepted. Such a hit uses the
  /// ``Freshness`` that ``judge(_:to:sent:fallback:stored:requestTime:now:revision:)`` stored.
  ///
  /// - Parameters:
  ///   - request: The caller's request, including its own conditions and ranges.
  ///   - policy: The caller's policy.
  ///   - stored: All stored responses of the resource, including partial ones, and those that another validator has stored.
  ///   - now: The current time.
  func plan(_ request: HTTPRequest, policy: LoadPolicy, stored: [StoredMetadata], now: Timestamp) -> ValidationPlan

  /// Returns the consequences of a response or an error from the network.
  ///
  /// - Parameters:
  ///   - result: The header of the response, or the error if there is none.
  ///   - request: The caller's request.
  ///   - sent: The request that was sent, including conditions.
  ///   - fallback: The response that the plan would serve if the origin cannot be reached, as an index into `stored`.
  ///   - stored: The stored responses that the plan was made with.
  ///   - requestTime: The time at which the request was sent.
  ///   - now: The time at which the header of the response arrived.
  ///   - revision: The revision for the body that is about to arrive.
  func judge(
    _ result: Result<HTTPResponse, CacheError>, to request: HTTPRequest, sent: HTTPRequest, fallback: Int?,
    stored: [StoredMetadata], requestTime: Timestamp, now: Timestamp, revision: Revision
  ) -> ValidationVerdict

  /// Returns the reply to `request` from a stored response: the whole response, its header, a range, or the result of the
  /// caller's own condition.
  ///
  /// - Parameters:
  ///   - request: The caller's request.
  ///   - metadata: The stored response, after the update by a 304 if there was one.
  ///   - now: The current time, which determines `Age`.
  func reply(to request: HTTPRequest, from metadata: StoredMetadata, now: Timestamp) -> StoredReply

  /// Whether stored parts are combined with each other and with missing bytes (RFC 9111 §3.4). The default is `false`.
  ///
  /// A manager then requests long ranges in pieces, so that several readers can share them.
  var combinesParts: Bool { get }

  /// Returns the names of the request fields that selected a stored response (RFC 9111 §4.1). A request with different values of
  /// these fields may have another response.
  ///
  /// Request coalescing uses them before the response is known: a request waits for another one only if these fields are equal. A
  /// missing name can cause an unnecessary wait, but never a wrong response.
  func selectingFields(of metadata: StoredMetadata) -> [HTTPField.Name]
}

extension ResponseValidator {
  /// Returns the whole response, without evaluating conditions and ranges.
  public func reply(to request: HTTPRequest, from metadata: StoredMetadata, now: Timestamp) -> StoredReply {
    StoredReply(head: metadata.response, content: request.method == .head ? .none : .whole)
  }

  public var combinesParts: Bool { false }

  /// Returns the names of the stored request's fields.
  public func selectingFields(of metadata: StoredMetadata) -> [HTTPField.Name] { metadata.request.headerFields.map(\.name) }
}

/// A decision about a request, given the stored responses. Indices refer to `stored`.
public enum ValidationPlan: Sendable {
  /// Use a stored response. If it is stale, send `thenRevalidate` in the background. ``ResponseValidator/reply(to:from:now:)``
  /// returns what the client receives: with the caller's own conditions or range, it is not the whole response.
  case use(Int, thenRevalidate: HTTPRequest?)
  /// Send the request. If the origin cannot be reached, `fallback` may be served instead.
  case fetch(HTTPRequest, fallback: Int?, reason: ForwardReason)
  /// Combine stored parts with the bytes that are missing, which are requested. ``ResponseValidator/reply(to:from:now:)`` for the
  /// metadata of the whole returns what the client receives. Only a validator that
  /// ``ResponseValidator/combinesParts`` returns this plan.
  case combine(PartCombination)
  /// Return this response (504), which has no body.
  case respond(HTTPResponse)
}

/// A decision about a response from the network. Indices refer to `stored`.
public enum ValidationVerdict: Sendable {
  /// A 304 confirmed a stored response. Leave its body unchanged, replace its metadata, and return its
  /// ``ResponseValidator/reply(to:from:now:)``.
  case update(Int, StoredMetadata, StoreChanges)
  /// Make the changes, store the response under `variant`, and return it unmodified.
  case store(variant: String, StoredMetadata, StoreChanges)
  /// Return the response without storing it. `shareable` states whether concurrent equal requests may also receive it.
  case pass(StoreChanges, shareable: Bool)
  /// The response is of no use to the cache and the caller, such as a 304 that confirms no stored response. Send this request,
  /// which has only the caller's own conditions.
  case refetch(HTTPRequest)
  /// Serve the stored response, because the origin could not be reached or failed.
  case serveStale(Int)
}

/// The changes to stored responses that a response causes, even if it is not stored itself. Indices refer to `stored`.
public struct StoreChanges: Hashable, Sendable {
  /// A stored response that a 304 has also selected for a request with other selecting fields.
  public struct Copy: Hashable, Sendable {
    /// The index of the stored response, whose body is copied.
    public var index: Int
    /// The variant of the copy.
    public var variant: String
    /// The metadata of the copy, which has a new revision.
    public var metadata: StoredMetadata

    /// Creates a copy.
    public init(_ index: Int, variant: String, _ metadata: StoredMetadata) {
      (self.index, self.variant, self.metadata) = (index, variant, metadata)
    }
  }

  /// New metadata for stored responses whose bodies remain, keyed by index. The revision stays the same. A HEAD, or a 304 for
  /// another variant, causes such an update.
  public var updates: [Int: StoredMetadata]
  /// The indices of stored responses to remove. Remove them before storing anything, because one of them may have the variant of
  /// the new response.
  public var drops: [Int]
  /// The URIs, in the form of ``ResourceID``, of resources to remove completely (RFC 9111 §4.4).
  public var invalidations: [String]
  /// The response to store under another variant too, if its body is available. Only a 304 causes a copy.
  public var copy: Copy?

  /// Creates changes, by default none.
  public init(updates: [Int: StoredMetadata] = [:], drops: [Int] = [], invalidations: [String] = [], copy: Copy? = nil) {
    self.updates = updates
    self.drops = drops
    self.invalidations = invalidations
    self.copy = copy
  }

  /// No changes.
  public static let none = StoreChanges()
}

/// A reply that is made from a stored response: a header, and the stored bytes that follow it.
public struct StoredReply: Hashable, Sendable {
  /// The bytes after the header.
  public enum Content: Hashable, Sendable {
    /// No bytes: the request is a HEAD, or the response has no body (304, 412, 416).
    case none
    /// All stored bytes.
    case whole
    /// A range of the stored body, counted from its first byte.
    case range(Range<Int64>)
  }

  /// The status and the fields, including `Age`, without fields that concern a single connection.
  public var head: HTTPResponse
  /// The bytes after the header.
  public var content: Content

  /// Creates a reply.
  public init(head: HTTPResponse, content: Content) {
    self.head = head
    self.content = content
  }
}

/// The outcome of revalidating a stored response.
public enum RevalidationOutcome: String, Hashable, Sendable, CaseIterable {
  /// No revalidation was needed: the stored response was usable, or no response was stored.
  case notAttempted
  /// The origin confirmed the stored response (304).
  case notModified
  /// The origin sent a new response, which replaces the stored one.
  case modified
  /// The origin did not respond or returned a server error. The stored response is used although it may be outdated.
  case failed
}

extension StoredMetadata {
  /// Creates the metadata of a response for a cache of your own, or returns `nil` if the response must not be stored.
  ///
  /// ```swift
  /// let metadata = StoredMetadata(request: request, response: response.head, at: SystemClock().now, validator: validator)
  /// let key = CacheKey(resource: url.absoluteString, variant: validator.variant(of: response.head, to: request))
  /// if let metadata { try await store.store(body, for: key, metadata: metadata) }
  /// ```
  ///
  /// A response with a `Vary` field applies only to requests with the same selecting fields, so its key needs the variant. The
  /// result for a 206 is `nil`, because its body is only a part of the representation.
  ///
  /// - Parameters:
  ///   - request: The request that was sent.
  ///   - response: The response to it.
  ///   - time: The time at which the response arrived.
  ///   - validator: The validator that decides whether and for how long the response may be used.
  public init?(request: HTTPRequest, response: HTTPResponse, at time: Timestamp, validator: some ResponseValidator) {
    guard response.status != .partialContent else { return nil }
    let verdict = validator.judge(
      .success(response), to: request, sent: request, fallback: nil, stored: [], requestTime: time, now: time,
      revision: .random())
    guard case .store(_, let metadata, _) = verdict else { return nil }
    self = metadata
  }
}

/// Stored parts of one representation. With the bytes that are missing, they satisfy a request (RFC 9111 §3.4).
///
/// All parts have the same strong validator and the same length of the whole. The missing bytes are requested with `If-Range`, so
/// bytes of two representations are never combined.
public struct PartCombination: Hashable, Sendable {
  /// A stored part.
  public struct Part: Hashable, Sendable {
    /// The index of the part among the stored responses.
    public var index: Int
    /// The positions of its bytes in the whole.
    public var bytes: Range<Int64>

    /// Creates a part.
    public init(_ index: Int, _ bytes: Range<Int64>) { (self.index, self.bytes) = (index, bytes) }
  }

  /// The parts, in the order of their first bytes. Parts may overlap.
  public var parts: [Part]
  /// The positions of the bytes that the request wants, at least one.
  public var wanted: Range<Int64>
  /// The metadata of the whole response, with the fields of the latest part.
  public var whole: StoredMetadata
  /// The variant under which the whole response is stored.
  public var variant: String
  /// The request for missing bytes, which has `If-Range`, and to which a `Range` is added.
  public var request: HTTPRequest
  /// Whether the origin must confirm the parts before they are used, because they are stale: by its response with missing bytes,
  /// or with any byte if none is missing.
  public var requiresValidation: Bool

  /// Creates a combination.
  public init(
    parts: [Part], wanted: Range<Int64>, whole: StoredMetadata, variant: String, request: HTTPRequest, requiresValidation: Bool
  ) {
    (self.parts, self.wanted, self.whole, self.variant) = (parts, wanted, whole, variant)
    (self.request, self.requiresValidation) = (request, requiresValidation)
  }

  /// Whether bytes that the request wants are missing.
  public var isIncomplete: Bool { wanted.firstMissing(apartFrom: parts.lazy.map(\.bytes)) != nil }
}
