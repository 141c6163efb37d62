public import HTTPTypes

/// What to do about a request, given what is stored. Indices point into `stored`.
public enum ValidationPlan: Sendable {
  /// Use a stored answer: it is fresh, or may be shown stale while `thenRevalidate` asks.
  case use(Int, thenRevalidate: HTTPRequest?)
  /// Ask. When nobody can be asked, `fallback` may be shown instead.
  case fetch(HTTPRequest, fallback: Int?)
  /// An answer made here (304, 412, 416 or 504), without body.
  case answer(HTTPResponse)
}

/// What to do with an answer. Indices point into `stored`.
public enum ValidationVerdict: Sendable {
  /// A 304 confirmed a stored answer: keep its body, replace its metadata.
  case freshen(Int, StoredMetadata)
  /// Store it under `variant`, and remove the stored answers it replaces.
  case store(variant: String, StoredMetadata, dropping: [Int])
  /// Hand it on without storing it. `invalidate` names resources that it makes outdated; `shareable` says whether others who asked
  /// the same at the same time may have it too.
  case pass(invalidate: [String], shareable: Bool)
  /// A 304 that confirms nothing that is stored: ask once more, unconditionally.
  case refetch
  /// Nobody could be asked: show the stored answer.
  case serveStale(Int)
}

/// HTTP caching as decisions: pure and synchronous. It is told the time and never touches a file, a socket or a clock.
public protocol ResponseValidator: Component {
  /// Decides before the network is asked.
  ///
  /// Not called for a plain hit in memory: a request without fields, under ``LoadPolicy/standard``, for which one answer without selecting fields is
  /// stored, goes by the ``CachingFacts`` that ``judge(_:to:sent:fallback:stored:requestTime:now:revision:)`` left.
  func plan(_ request: HTTPRequest, policy: LoadPolicy, stored: [StoredMetadata], now: Timestamp) -> ValidationPlan

  /// Decides about what the network answered.
  ///
  /// - Parameters:
  ///   - answer: the head, or why none came.
  ///   - request: what the caller asked.
  ///   - sent: what went out, conditions included.
  ///   - fallback: what the plan would show when nobody can be asked.
  ///   - stored: what the plan was made with; `fallback` is an index into it.
  ///   - requestTime: when the request went out.
  ///   - now: when the answer's head came in.
  ///   - revision: minted for the body that is about to arrive.
  func judge(
    _ answer: Result<HTTPResponse, CacheError>, to request: HTTPRequest, sent: HTTPRequest, fallback: Int?,
    stored: [StoredMetadata], requestTime: Timestamp, now: Timestamp, revision: Revision
  ) -> ValidationVerdict
}

/// How the origin was asked about a stored answer, and what it said.
public enum ETagValidationResult: String, Hashable, Sendable, CaseIterable {
  /// Nobody was asked: the stored answer was usable as it is, or nothing was stored.
  case none
  /// The origin confirmed the stored answer (304).
  case reused
  /// The origin sent a new answer in place of the stored one.
  case fresh
  /// Nobody answered; the stored answer is shown though it may be outdated.
  case failed
}
