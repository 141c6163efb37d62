public import HTTPTypes

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
