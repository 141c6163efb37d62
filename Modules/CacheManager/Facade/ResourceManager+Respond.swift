public import CacheCore
public import HTTPTypes

extension ResourceManager {
  /// Responds to a request as an HTTP cache does (RFC 9111). Uses a stored response if that is allowed. Otherwise it uses the
  /// origin's response, which is stored while it is read.
  ///
  /// ```swift
  /// let request = HTTPRequest(method: .get, scheme: "https", authority: "example.com", path: "/logo.png")
  /// let response = try await manager.respond(to: request)
  /// print(response.head.status, response.status)  // 200 OK, Etagere;hit;ttl=59
  /// for try await chunk in response.body { send(chunk) }
  /// ```
  ///
  /// Every method and every status is passed on. If a stored response may be used, it satisfies the request's conditions and
  /// ranges with 304, 206 or 416. Otherwise the conditions and ranges are sent to the origin. Redirects are returned as
  /// responses, and bodies are as they are on the wire. A request is sent twice only after a 304 that confirms no stored
  /// response. If no stored response is usable, and `.cacheOnly` or the request's `only-if-cached` forbids a request, the
  /// response is 504.
  ///
  /// Simultaneous requests become one request to the origin if its response may be reused for all of them (RFC 9111 §4): see
  /// ``Configuration/collapseTimeout``. A response with `no-cache`, or without a lifetime, is shared only by requests with equal
  /// fields.
  ///
  /// A stale response within `stale-while-revalidate` is returned at once and revalidated in the background, even if the caller
  /// leaves. At most 64 such revalidations run at the same time. A further one is skipped, and the next request for its resource
  /// tries again.
  ///
  /// The options about values have no effect: executor, callback queue, accepted statuses, redirects and alternatives.
  ///
  /// - Parameters:
  ///   - request: The request, with scheme, authority and path. The cache adds its own conditions and sends it otherwise
  ///     unchanged.
  ///   - body: The content of the request, which is read once.
  ///   - options: The components, policy, partition and layers for this request.
  /// - Throws: The error of the request to the origin, if no stored response may be used instead.
  ///   `CacheError.Code.revalidationFailed`, if the stored response forbids its own use (`must-revalidate`, `no-cache`; RFC 9111
  ///   §5.2.2.2, §5.2.2.4). An HTTP server responds to that error with 504.
  public func respond(
    to request: HTTPRequest, body: ResourceBody? = nil, options: RequestOptions = RequestOptions()
  ) async throws(CacheError) -> CachedResponse {
    do throws(CacheError) {
      let operation = try operation(for: request, hasBody: body != nil, options)
      if operation.request.observation != nil { return try await operation.runObserved(sending: body) }
      return try await operation.run(sending: body)
    } catch {
      body?.source.cancel()
      throw error.about(request.absoluteURL?.address ?? "")
    }
  }

  /// Creates the operation, out of line. An asynchronous call keeps a copy of everything that is inlined into it, and the options
  /// and the configuration are large.
  @inline(never)
  private func operation(
    for request: HTTPRequest, hasBody: Bool, _ options: RequestOptions
  ) throws(CacheError) -> ResponseOperation {
    let load = ResolvedRequest(try RequestSettings(exchange: request, hasBody: hasBody, options, core))
    guard !core.flights.isClosed else { throw load.managerIsClosed }
    return ResponseOperation(
      load, core: core, name: configuration.cacheName, wait: CoalescingWait(limit: configuration.collapseTimeout))
  }
}

/// An HTTP response: a head, a body that streams, and the handling by the cache.
public struct CachedResponse: Sendable {
  /// The status and the header fields. A stored response has `Age`. Every response has `Cache-Status`, unless
  /// ``ResourceManager/Configuration/cacheName`` is `nil`.
  ///
  /// The fields of a forwarded response are the origin's, including those about its connection (RFC 9110 §7.6.1). A caller that
  /// forwards the response must remove those.
  public var head: HTTPResponse
  /// The bytes. A response that is being stored is stored as its bytes are read. If the caller does not read to the end, nothing
  /// is stored.
  public var body: ResourceBody
  /// The handling of the request by the cache (RFC 9211).
  public var status: CacheStatus
  /// The source of the body.
  public var source: ResourceSource
  /// The error, or the origin's status, because of which a stored response is served without a confirmation. `nil` for every
  /// other response.
  public var fallbackReason: CacheError?
  /// The metrics of the forwarded request, which are complete once the body has ended. A hit sends no request, so its attempts
  /// and bytes are zero.
  public var metrics: @Sendable () -> TransferMetrics

  /// Creates a response from its parts, for fakes in tests.
  public init(
    head: HTTPResponse, body: ResourceBody, status: CacheStatus, source: ResourceSource, fallbackReason: CacheError? = nil,
    metrics: @escaping @Sendable () -> TransferMetrics = { TransferMetrics(attempts: 0) }
  ) {
    self.head = head
    self.body = body
    self.status = status
    self.source = source
    self.fallbackReason = fallbackReason
    self.metrics = metrics
  }
}
