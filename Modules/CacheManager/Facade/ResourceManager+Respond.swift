public import CacheCore
public import HTTPTypes

extension ResourceManager {
  /// Answers a request as an HTTP cache does (RFC 9111): from what is stored where that is right, else with the origin's answer,
  /// which is stored as it is read.
  ///
  /// ```swift
  /// let request = HTTPRequest(method: .get, scheme: "https", authority: "example.com", path: "/logo.png")
  /// let response = try await manager.respond(to: request)
  /// print(response.head.status, response.status)  // 200 OK, Etagere;hit;ttl=59
  /// for try await chunk in response.body { send(chunk) }
  /// ```
  ///
  /// Every method and every status passes. Conditions and ranges of the request count: they are answered with 304, 206 or 416
  /// from a stored answer that may be used, and go to the origin where none may. Redirects are answers, bodies are as they are on
  /// the wire, and nothing is sent twice, but for a 304 that confirms nothing that is stored. Where nothing may be asked and
  /// nothing is stored, the answer is 504.
  ///
  /// Equal requests at the same moment become one to the origin (RFC 9111 §4): see ``Configuration/collapseTimeout``. Requests
  /// that arrived before its response share it, also where the response states no lifetime.
  ///
  /// Of the options, those about values (executor, callback queue, accepted statuses, redirects, alternatives) have no meaning
  /// here.
  ///
  /// - Parameters:
  ///   - request: an absolute one: scheme, authority and path. It goes out as it stands, with the cache's own conditions added.
  ///   - body: what is sent with it; read once.
  ///   - options: components, policy, partition and layers for this exchange.
  /// - Throws: why there is no answer: nobody answered, and nothing is stored that may stand in;
  ///   `CacheError.Code.revalidationFailed`, where what is stored forbids it (`must-revalidate`, `no-cache`; RFC 9111 §5.2.2.2),
  ///   which an HTTP server answers with 504.
  public func respond(
    to request: HTTPRequest, body: ResourceBody? = nil, options: RequestOptions = RequestOptions()
  ) async throws(CacheError) -> CachedResponse {
    do throws(CacheError) {
      return try await operation(for: request, hasBody: body != nil, options).run(sending: body)
    } catch {
      body?.source.cancel()
      throw error.about(request.absoluteURL?.address ?? "")
    }
  }

  /// Out of line: an asynchronous call keeps a copy of all that has been inlined into it, and options and configuration are
  /// large.
  @inline(never)
  private func operation(
    for request: HTTPRequest, hasBody: Bool, _ options: RequestOptions
  ) throws(CacheError) -> ResponseOperation {
    let load = ResolvedRequest(try RequestSettings(exchange: request, hasBody: hasBody, options, configuration, core))
    guard !core.coalescer.isClosed else { throw load.managerIsClosed }
    return ResponseOperation(
      load, core: core, name: configuration.cacheName, wait: CoalescingWait(limit: configuration.collapseTimeout))
  }
}
