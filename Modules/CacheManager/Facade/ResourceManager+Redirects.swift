package import CacheCore
package import HTTPTypes

extension ResourceManager {
  /// Responds like ``respond(to:body:options:)`` to a GET request, and follows redirects by the rules of loads. The interceptor
  /// does not decide about them.
  ///
  /// A body that the durable store receives is loaded into it before the response is returned, and is then read from there. A
  /// slow reader of the response thus holds no connection to the origin. A body that is not stored streams from the origin.
  ///
  /// - Parameters:
  ///   - request: The request.
  ///   - limit: The maximum number of bytes of a body that is loaded into the store.
  ///   - options: The options. They must not write to the memory store, because the body is looked for in the durable store.
  /// - Returns: The response, and the request to which it belongs: the last redirect's or the given one.
  /// - Throws: The errors of ``respond(to:body:options:)``, `CacheError.Code.redirectRefused` or `.tooManyRedirects`, and
  ///   `CacheError.Code.bodyTooLarge`, unless the response announces its length. The caller refuses such a response.
  package func respondFollowingRedirects(
    to request: HTTPRequest, storingUpTo limit: Int64, options: RequestOptions
  ) async throws(CacheError) -> (response: CachedResponse, request: HTTPRequest) {
    guard let url = request.absoluteURL else { throw CacheError(.invalidURL, reason: "the request has no URL") }
    let rules = ResolvedRequest(try RequestSettings(exchange: request, hasBody: false, options, core))
    var hop = RedirectHop(request: request, url: url)
    while true {
      let response = try await respond(to: hop.request, options: options)
      guard let next = try RedirectRules.proposal(after: response.head, to: hop) else {
        guard response.isBeingStored, response.body.length ?? 0 <= limit else { return (response, hop.request) }
        return (try await stored(response, to: hop.request, limit, options), hop.request)
      }
      // A redirect is stored when its body has been read.
      _ = try? await response.body.collect(limit: 64 << 10)
      try RedirectRules.check(next, from: hop, rules)
      hop = next
    }
  }

  /// Reads a body to its end, so that it is stored, and returns the stored response.
  private func stored(
    _ response: CachedResponse, to request: HTTPRequest, _ limit: Int64, _ options: RequestOptions
  ) async throws(CacheError) -> CachedResponse {
    var count: Int64 = 0
    while let chunk = try await response.body.source.next() {
      count += Int64(chunk.count)
      guard count <= limit else {
        response.body.source.cancel()
        throw CacheError(.bodyTooLarge, reason: "the body is larger than \(limit) bytes")
      }
    }
    // The origin has just sent the response, so it needs no validation. This part of the request is not observed as a hit.
    var stored = options
    (stored.policy, stored.observer) = (.cacheOnly, .disabled)
    guard var found = try? await respond(to: request, options: stored), found.status.isHit else {
      // The response was removed in the meantime, or the store failed.
      return try await respond(to: request, options: options)
    }
    if let name = CacheStatus.fieldName { found.head.headerFields[fields: name] = response.head.headerFields[fields: name] }
    (found.status, found.source, found.metrics) = (response.status, .disk, response.metrics)
    return found
  }
}

extension CachedResponse {
  /// Whether the durable store receives the body while it comes from the origin.
  fileprivate var isBeingStored: Bool {
    source == .network && body.data == nil && (status.isStored || status.isCollapsed)
      && (head.status == .ok || head.status == .partialContent)
  }
}
