internal import CacheCore
internal import HTTPTypes

/// One request of an HTTP caller (`respond(to:)`): a transaction whose response streams to the caller.
struct ResponseOperation: Sendable {
  let transaction: CacheTransaction
  let core: LoadCoordinator
  /// The name of the cache in `Cache-Status`, or `nil` for no such field.
  let name: String?
  let wait: CoalescingWait

  init(_ request: ResolvedRequest, core: LoadCoordinator, name: String?, wait: CoalescingWait) {
    self.init(
      CacheTransaction(
        request, head: request.head, priority: LoadPriority(request.priority),
        cache: TieredCache(request, resource: request.settings.resource)),
      core: core, name: name, wait: wait)
  }

  private init(_ transaction: CacheTransaction, core: LoadCoordinator, name: String?, wait: CoalescingWait) {
    self.transaction = transaction
    self.core = core
    self.name = name
    self.wait = wait
  }

  var request: ResolvedRequest { transaction.request }

  func run(sending body: ResourceBody?) async throws(CacheError) -> CachedResponse {
    let arrival = core.responseCoalescer.count
    switch try await transaction.decide() {
    case .stored(let response, let revalidation):
      if let (sent, originRequest) = revalidation { revalidate(sent, originRequest) }
      return finished(response)
    case .askOrigin(let sent, let originRequest): return try await forward(originRequest, sent, body, since: arrival)
    case .generated(let head):
      body?.source.cancel()
      let status = CacheStatus("", madeHere: "not cached, and the origin may not be asked")
      return finished(TransactionResponse(head: head, body: .none, source: .memory, status: status))
    }
  }

  /// The same request after it has waited for another in vain. It looks into the stores again.
  func again(_ wait: CoalescingWait) async throws(CacheError) -> CachedResponse {
    try await ResponseOperation(request, core: core, name: name, wait: wait).run(sending: nil)
  }

  /// Sends the request to the origin.
  func send(_ originRequest: OriginRequest, _ sent: HTTPRequest, _ body: ResourceBody?) async throws(CacheError) -> CachedResponse
  {
    finished(try await originRequest.send(sent, body.map { .stream($0) } ?? .none))
  }

  /// The response for the caller, with what the cache did.
  func finished(_ response: TransactionResponse) -> CachedResponse {
    var (head, status) = (response.head, response.status)
    status.cache = name ?? ""
    if name != nil { status.append(to: &head.headerFields) }
    let finished = CachedResponse(head: head, body: response.body, status: status, source: response.source)
    guard let received = response.received else { return finished }
    return finished.with(received.response.metrics)
  }

  /// Asks about a response that the caller has got already. For each resource one such request runs at a time.
  private func revalidate(_ sent: HTTPRequest, _ originRequest: OriginRequest) {
    let background = request.with { settings in
      for name in ConfidentialFields.conditions + [.range] { settings.head.headerFields[name] = nil }
    }
    // What is removed from now on counts as removed for the background request too.
    let transaction = CacheTransaction(
      background, head: background.head, priority: LoadPriority(background.priority),
      cache: originRequest.cache.seen(by: background))
    let asking = OriginRequest(transaction, originRequest.candidates, fallback: nil, reason: .stale, selectsStored: true)
    core.revalidations.begin(RevalidationTable.Subject(originRequest.cache)) {
      do throws(CacheError) {
        let response = try await asking.send(sent)
        // The caller needs no bytes. Only a response that is stored is read.
        guard response.status.isStored else { return response.body.source.cancel() }
        while try await response.body.source.next() != nil {}
      } catch {
        if !error.isCancellation { background.observe(.backgroundFailed(url: background.address, error: error)) }
      }
    }
  }
}

extension CachedResponse {
  fileprivate func with(_ metrics: @escaping @Sendable () -> TransferMetrics) -> CachedResponse {
    var response = self
    response.metrics = metrics
    return response
  }
}
