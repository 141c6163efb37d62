package import CacheCore
package import HTTPTypes

extension ResourceManager {
  /// Responds like ``respond(to:body:options:)`` to a GET request, and follows redirects by the rules of loads. The interceptor
  /// does not decide about them.
  ///
  /// - Throws: The errors of ``respond(to:body:options:)``, and `CacheError.Code.redirectRefused` or `.tooManyRedirects`.
  package func respondFollowingRedirects(
    to request: HTTPRequest, options: RequestOptions
  ) async throws(CacheError) -> CachedResponse {
    guard let url = request.absoluteURL else { throw CacheError(.invalidURL, reason: "the request has no URL") }
    let rules = ResolvedRequest(try RequestSettings(exchange: request, hasBody: false, options, core))
    var hop = RedirectHop(request: request, url: url)
    while true {
      let response = try await respond(to: hop.request, options: options)
      guard let next = try RedirectRules.proposal(after: response.head, to: hop) else { return response }
      // A redirect is stored when its body has been read.
      _ = try? await response.body.collect(limit: 64 << 10)
      try RedirectRules.check(next, from: hop, rules)
      hop = next
    }
  }
}
