public import HTTPTypes

/// HTTP caching as decisions: pure and synchronous. It is told the time and never touches a file, a socket or a clock.
///
/// An exchange goes so: ``plan(_:policy:stored:now:)`` says what to use or what to send;
/// ``judge(_:to:sent:fallback:stored:requestTime:now:revision:)`` says what the answer means for what is stored;
/// ``reply(to:from:now:)`` says what to send of a stored answer, when one is used.
public protocol ResponseValidator: Component {
  /// Decides before the network is asked.
  ///
  /// Not called for a plain hit in memory: a request without fields, under ``LoadPolicy/standard``, for which one answer without
  /// selecting fields is stored, goes by the ``Freshness`` that ``judge(_:to:sent:fallback:stored:requestTime:now:revision:)``
  /// left.
  ///
  /// - Parameters:
  ///   - request: what the caller asks, with the caller's own conditions and ranges.
  ///   - policy: where the answer may come from.
  ///   - stored: everything that is stored of the resource, parts included.
  ///   - now: the time.
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
  ///   - revision: The revision for the body that is about to arrive.
  func judge(
    _ answer: Result<HTTPResponse, CacheError>, to request: HTTPRequest, sent: HTTPRequest, fallback: Int?,
    stored: [StoredMetadata], requestTime: Timestamp, now: Timestamp, revision: Revision
  ) -> ValidationVerdict

  /// What to send of a stored answer that is used for `request`: the whole of it, its head alone, a range, or that the caller's
  /// own condition does not hold.
  ///
  /// - Parameters:
  ///   - request: what the caller asked.
  ///   - metadata: the answer that is used, freshened where a 304 has done so.
  ///   - now: the time, which `Age` is told by.
  func reply(to request: HTTPRequest, from metadata: StoredMetadata, now: Timestamp) -> StoredReply

  /// The request fields that selected a stored answer (RFC 9111 §4.1): a request in which one of them is another, or is not
  /// there, may get another answer.
  ///
  /// Requests whose answers are not known yet wait for each other only where these fields are equal. One too few costs a wait in
  /// vain, and no wrong answer.
  func selectingFields(of metadata: StoredMetadata) -> [HTTPField.Name]
}

extension ResponseValidator {
  /// The whole answer as it is stored, without a look at the request's conditions and ranges.
  public func reply(to request: HTTPRequest, from metadata: StoredMetadata, now: Timestamp) -> StoredReply {
    StoredReply(head: metadata.response, content: request.method == .head ? .none : .whole)
  }

  /// Those that are stored with the answer: the fields that its request had.
  public func selectingFields(of metadata: StoredMetadata) -> [HTTPField.Name] { metadata.request.headerFields.map(\.name) }
}
