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
  /// response, and after a response that shows that stored parts are outdated. A validator that combines parts
  /// (`ResponseValidator.combinesParts`) makes the manager request long ranges, and the bytes that stored parts lack, in pieces.
  /// If no stored response is usable, and `.cacheOnly` or the request's `only-if-cached` forbids a request, the
  /// response is 504.
  ///
  /// Simultaneous requests become one request to the origin if its response may be reused for all of them (RFC 9111 §4): see
  /// ``Configuration/collapseTimeout``. A response with `no-cache`, or without a lifetime, is shared only by requests with equal
  /// fields.
  ///
  /// A stale response within `stale-while-revalidate` is returned at once and revalidated in the background, even if the caller
  /// leaves. At most 64 such revalidations ask one host at the same time, and at most 256 run. A further one is skipped, and the
  /// next request for its resource tries again.
  ///
  /// The options about values have no effect: executor, callback queue, accepted statuses, redirects and alternatives.
  ///
  /// - Parameters:
  ///   - request: The request, with scheme, authority and path. The cache adds its own conditions and sends it otherwise
  ///     unchanged.
  ///   - body: The content of the request, which is read once.
  ///   - options: The components, policy, partition and layers for this request.
  ///   - onInterimResponse: Receives the interim responses (1xx) of the origin while the request is forwarded, in order. They are
  ///     not stored. A request receives none if it waits for an equal one, is requested in pieces, or needs no request to the
  ///     origin. The closure must not block. The fields include those about the origin's connection.
  /// - Throws: The error of the request to the origin, if no stored response may be used instead.
  ///   `CacheError.Code.revalidationFailed`, if the stored response forbids its own use (`must-revalidate`, `no-cache`; RFC 9111
  ///   §5.2.2.2, §5.2.2.4). An HTTP server responds to that error with 504.
  public func respond(
    to request: HTTPRequest, body: ResourceBody? = nil, options: RequestOptions = RequestOptions(),
    onInterimResponse: (@Sendable (HTTPResponse) -> Void)? = nil
  ) async throws(CacheError) -> CachedResponse {
    do throws(CacheError) {
      let operation = try operation(for: request, hasBody: body != nil, options, onInterimResponse)
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
    for request: HTTPRequest, hasBody: Bool, _ options: RequestOptions, _ onInterimResponse: (@Sendable (HTTPResponse) -> Void)?
  ) throws(CacheError) -> ResponseOperation {
    let load = try ResolvedRequest(exchange: request, hasBody: hasBody, options, core, onInterimResponse)
    guard !core.flights.isClosed else { throw load.managerIsClosed }
    return ResponseOperation(
      request: load, core: core, name: configuration.cacheName, wait: CoalescingWait(limit: configuration.collapseTimeout))
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
  /// is stored, or a part if the validator combines parts.
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

extension ResourceManager {
  /// Responds like ``respond(to:body:options:onInterimResponse:)`` to a GET request, and follows redirects by the rules of loads.
  /// The interceptor does not decide about them.
  ///
  /// A body that the durable store receives is loaded into it before the response is returned, and is then read from there. A
  /// slow reader of the response thus holds no connection to the origin. A body that is not stored streams from the origin.
  ///
  /// - Parameters:
  ///   - request: The request.
  ///   - limit: The maximum number of bytes of a body that is loaded into the store.
  ///   - options: The options. They must not write to the memory store, because the body is looked for in the durable store.
  /// - Returns: The response, and the request to which it belongs: the last redirect's or the given one.
  /// - Throws: The errors of ``respond(to:body:options:onInterimResponse:)``, `CacheError.Code.redirectRefused` or
  ///   `.tooManyRedirects`, and `CacheError.Code.bodyTooLarge`, unless the response announces its length. The caller refuses such
  ///   a response.
  package func respondFollowingRedirects(
    to request: HTTPRequest, storingUpTo limit: Int64, options: RequestOptions
  ) async throws(CacheError) -> (response: CachedResponse, request: HTTPRequest) {
    guard let url = request.absoluteURL else { throw CacheError(.invalidURL, reason: "the request has no URL") }
    let rules = try ResolvedRequest(exchange: request, hasBody: false, options, core)
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
