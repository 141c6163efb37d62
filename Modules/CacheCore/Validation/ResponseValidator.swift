public import HTTPTypes

/// The rules of HTTP caching as pure, synchronous functions. A validator receives the time and never uses a file, a socket or a
/// clock.
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

  /// Returns the names of the stored request's fields.
  public func selectingFields(of metadata: StoredMetadata) -> [HTTPField.Name] { metadata.request.headerFields.map(\.name) }
}
