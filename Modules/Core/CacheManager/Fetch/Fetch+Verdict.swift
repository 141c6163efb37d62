internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// Carries out the validator's verdict about a response.
///
/// Code that only some responses need stays out of line, because an asynchronous call allocates memory for everything that is
/// inlined into it.
extension Fetch {
  func carryOutVerdict(about received: ReceivedResponse) async throws(CacheError) -> Attempt {
    // A caller would take a part that no range asked for (RFC 9110 §15.3.7) for the whole.
    let isUnrequestedPart = received.status == 206 && !received.sent.headerFields.contains(.range)
    switch judge(received) {
    case .pass(let changes, _) where isUnrequestedPart:
      // An unsafe request may have changed something all the same.
      await apply(changes)
      return .response(try await refusePart(received))
    case _ where isUnrequestedPart: return .response(try await refusePart(received))
    case .update(let index, let metadata, let changes):
      let ticket = cache.ticket(for: Candidate(key: candidates[index].key, metadata: metadata))
      try await finish(received)
      received.reservation?.release()
      await apply(changes)
      return try await confirm(index, metadata, changes.copy, received, ticket)
    case .store(let variant, let metadata, let changes):
      return .response(try await store(variant, metadata, changes, received))
    case .pass(let changes, let isShareable):
      await apply(changes)
      let isTypical = received.status != 304 && received.status < 500
      leader?.endWithoutSharing(.success(received.head), isTypical: isTypical)
      return .response(pass(received, isShareable: isShareable))
    case .refetch(let next):
      try await finish(received)
      received.reservation?.release()
      return .resend(next)
    case .serveStale(let index):
      return .response(try await serveStale(index, received))
    }
  }

  // MARK: A new response

  /// Inlined, because each asynchronous call allocates memory.
  @inline(__always)
  private func store(
    _ variant: String, _ metadata: StoredMetadata, _ changes: StoreChanges, _ received: ReceivedResponse
  ) async throws(CacheError) -> Exchange {
    guard mayStore(received) else { return pass(received, isShareable: true) }
    if changes != .none { await applyWithoutDrops(changes) }
    let entry = entry(variant, metadata, changes, received.response.body.length)
    var response = response(received, storing: entry)
    if let data = takeWholeBody(of: received) {
      if request.hasMemory { entry.cache.storeInMemory(data, entry.candidate, replacing: entry.outdated) }
      return response
    }
    try await beginRecording(received.response.body, entry, received.reservation, as: &response)
    return response
  }

  /// Whether a response may be stored that the validator stores.
  private func mayStore(_ received: ReceivedResponse) -> Bool {
    // A load cannot use a partial response. An engine that has decoded one removes its length, and the bytes have other
    // positions.
    if received.status == 206 {
      guard request.destination.isStream, let range = ContentRange(received.head.headerFields),
        received.response.body.length == range.length
      else { return false }
    }
    // Only the values that are made of a file are stored. The file of a mirror says nothing about the original.
    if request.isLocalFile, request.representation == nil || request.role == .mirror { return false }
    // An error or a redirect belongs to the mirror, and is not a response of the original.
    return request.role != .mirror || request.isResult(received.head)
  }

  /// Returns the entry of a new response.
  @inline(never)
  private func entry(
    _ variant: String, _ metadata: StoredMetadata, _ changes: StoreChanges, _ length: Int64?
  ) -> RecordingBody.Storage {
    var (metadata, outdated) = (metadata, changes.drops.map { candidates[$0] })
    if request.role == .mirror {
      metadata.response.headerFields[.eTag] = nil
      metadata.response.headerFields[.lastModified] = nil
      outdated = planner.selection(by: head, from: stored).map { [candidates[$0]] } ?? []
    }
    // A response to an unsafe method makes earlier requests outdated.
    let cache = head.method == .get ? cache : cache.invalidatingEarlierRequests()
    return entry(variant, metadata, replacing: outdated, in: cache, length)
  }

  func entry(
    _ variant: String, _ metadata: StoredMetadata, replacing outdated: [Candidate], in cache: TieredCache, _ length: Int64?
  ) -> RecordingBody.Storage {
    // A redirect is not the original of a value.
    let omitsOriginal = request.representation != nil && !request.storesOriginal && request.isResult(metadata.response)
    var candidate = Candidate(key: CacheKey(resource: cache.resource, variant: variant), metadata: metadata)
    // Each change copies the metadata, and most responses need only one.
    if let expiration = request.expiration {
      candidate.metadata.expiration = .earlier(metadata.expiration, expiration, from: metadata.responseTime)
    }
    // The length is announced, so that a store that is too small can refuse the body at once.
    if let length, length != metadata.bodyLength { candidate.metadata.bodyLength = length }
    return .init(
      cache: cache, candidate: candidate, outdated: outdated, known: candidates,
      omitsOriginal: omitsOriginal)
  }

  /// Returns the received response, which is stored when its body has been read.
  private func response(_ received: ReceivedResponse, storing entry: RecordingBody.Storage) -> Exchange {
    let metadata = entry.candidate.metadata
    var response = response(received, metadata, source: origin, storedAs: entry.candidate.key)
    response.change {
      $0.validation = selectsStored ? .modified : .notAttempted
      $0.status.lifetimeLeft = lifetimeLeft(metadata)
    }
    return response
  }

  /// Returns a body that has arrived as a whole, and counts it, if there is no durable store and nothing has to wait. Each
  /// asynchronous call between here and the memory store would cost memory and time.
  ///
  /// - Returns: `nil` if the body must be recorded while it is read.
  private func takeWholeBody(of received: ReceivedResponse) -> Data? {
    guard request.destination.isMemory, !request.hasStore, !request.hasFleet, !request.isFromCaller,
      let data = received.response.body.data, data.count <= request.maximumBodySize
    else { return nil }
    received.reservation?.hold(Int64(data.count))
    return data
  }

  /// Makes the body of `response` one that is stored while it is read.
  @inline(never)
  private func beginRecording(
    _ body: ResourceBody, _ entry: RecordingBody.Storage, _ reservation: MemoryReservation?, as response: inout Exchange
  ) async throws(CacheError) {
    // Without a durable store, an asynchronous call would only cost memory.
    let writer = entry.omitsOriginal || !request.hasStore ? nil : try await entry.cache.writer(entry.candidate, lease)
    let recording = recording(body, entry, writer, reservation)
    response.change {
      $0.recording = recording
      $0.status.isStored = writer != nil || recording.mayFitInMemory
    }
    guard request.destination.isStream else { return }
    guard body.length != 0 else {
      // A caller may not read the end of an empty body.
      _ = try await recording.next()
      response.body = .none
      return
    }
    response.body = share(recording, entry.candidate)
  }

  @inline(never)
  private func recording(
    _ body: ResourceBody, _ entry: RecordingBody.Storage, _ writer: (any EntryWriter)?, _ reservation: MemoryReservation?
  ) -> RecordingBody {
    // Other processes need not wait for a body that they cannot use.
    if writer == nil || !entry.candidate.metadata.freshness.isFresh(at: request.clock.now) {
      lease?.endWithoutSharing(isTypical: true)
    }
    // Without any store, the bytes are only collected. A stream may be shared with other requests meanwhile.
    let isStored = request.hasMemory || request.hasStore || request.destination.isStream || body.length == nil
    return RecordingBody(
      body, for: request, storing: isStored ? entry : nil, writer: writer, leader: leader, lease: lease,
      reservation: reservation)
  }

  /// Returns the body for the caller, and shares it with coalesced requests.
  private func share(_ recording: RecordingBody, _ candidate: Candidate) -> ResourceBody {
    let alone = ResourceBody(length: recording.length, source: recording)
    guard let leader else { return alone }
    guard isShareable(candidate.metadata) else {
      leader.endWithoutSharing(.success(candidate.metadata.response), isTypical: true)
      return alone
    }
    let shared = SharedBody(recording, leader, request.temporarySpace, on: request.downloader?.preferredExecutor)
    leader.grows(as: candidate, in: shared)
    return shared.first
  }

  /// Whether equal requests that arrived before a response may use it.
  private func isShareable(_ metadata: StoredMetadata) -> Bool {
    guard case .use = planner.plan(head, validatedMeanwhile: metadata) else { return false }
    return true
  }

  // MARK: A combined response

  /// Makes a body that is combined from parts one that is stored as the whole response while it is read. It then replaces the
  /// parts.
  @inline(never)
  func record(
    _ body: ResourceBody, _ live: LiveParts, _ metadata: StoredMetadata, as response: inout Exchange
  ) async throws(CacheError) {
    var entry = entry(live.variant, metadata, replacing: [], in: cache, body.length)
    entry.parts = live
    let reservation =
      request.destination.isStream ? nil : request.budget.reservation(holding: 0, request.isNested ? nil : priority)
    response.reservation = reservation
    try await beginRecording(body, entry, reservation, as: &response)
  }

  /// Stores a body in the durable store, and returns its entry, or `nil` if it is not stored.
  ///
  /// - Throws: The error of a store that does not begin the entry, which the caller reports.
  @inline(never)
  func storeOnDisk(
    _ body: ResourceBody, _ variant: String, _ metadata: StoredMetadata
  ) async throws(CacheError) -> Candidate? {
    let entry = entry(variant, metadata, replacing: [], in: cache, body.length)
    guard let writer = try await entry.cache.writerOrError(entry.candidate) else { return nil }
    let recording = RecordingBody(body, for: request, storing: entry, writer: writer)
    while try await recording.next() != nil {}
    return recording.storedOnDisk.map { Candidate(key: entry.candidate.key, metadata: $0) }
  }

  // MARK: A confirmed response

  @inline(never)
  private func confirm(
    _ index: Int, _ metadata: StoredMetadata, _ copy: StoreChanges.Copy?, _ received: ReceivedResponse,
    _ ticket: CommitOrder.Ticket?
  ) async throws(CacheError) -> Attempt {
    let candidate = candidate(index)
    var confirmed = candidate
    confirmed.metadata = metadata
    // An expiration that the validator set, such as the lifetime of an error, is not extended.
    if case .at = metadata.expiration {
      confirmed.metadata.expiration = .earlier(metadata.expiration, request.expiration, from: metadata.responseTime)
    } else {
      confirmed.metadata.expiration = request.expiration ?? metadata.expiration
    }
    var reply = reply(from: confirmed.metadata)
    guard let content = try await cache.content(of: candidate, priority, reply.content) else {
      // The body is missing, and the origin has sent only the head.
      return .resend(head)
    }
    // The cookies of a 304 are for this client, also if the validator does not store them.
    let cookies = received.head.headerFields[fields: .setCookie]
    if !cookies.isEmpty { reply.head.headerFields[fields: .setCookie] = cookies }
    await cache.confirm(confirmed, content, ticket)
    if copy == nil { lease?.end(storing: confirmed.metadata, at: request.clock.now) }
    var response = exchange(confirmed, reply.head, content, forwarded(received.status))
    if !request.destination.isStream { response.source = .revalidated }
    response.validation = .notModified
    response.received = received
    if let copy, mayCopy(content, reply.head, metadata) {
      let entry = entry(copy.variant, copy.metadata, replacing: [], in: cache, response.body.length)
      try await beginRecording(response.body, entry, nil, as: &response)
    } else if let leader {
      let isShared =
        isShareable(metadata) && (metadata.freshness.isFresh(at: request.clock.now) || sharesConfirmation(received))
      if isShared {
        leader.stored(confirmed, status: received.status)
      } else {
        leader.endWithoutSharing(.success(received.head), isTypical: copy == nil)
      }
    }
    response.status.lifetimeLeft = lifetimeLeft(metadata)
    return .response(response)
  }

  /// Whether the whole body is available, so that it can be stored under another variant too.
  private func mayCopy(_ content: TieredCache.Content, _ head: HTTPResponse, _ metadata: StoredMetadata) -> Bool {
    switch request.destination {
    case .stream: head.status == metadata.response.status
    case .memory: !content.isBodyLeft
    case .file, .store: false
    }
  }

  /// Whether other requests may use a response that a 304 has confirmed. They may not if a 200 with the same fields could not be
  /// stored (`no-store`, or `private` in a shared cache).
  private func sharesConfirmation(_ received: ReceivedResponse) -> Bool {
    let verdict = planner.judge(
      .success(HTTPResponse(status: .ok, headerFields: received.head.headerFields)), to: head, sent: head,
      fallback: nil, stored: [], requestTime: received.requestTime, now: request.clock.now)
    guard case .store = verdict else { return false }
    return true
  }

  // MARK: Other responses

  /// Returns the received response, which is not stored.
  private func pass(_ received: ReceivedResponse, isShareable: Bool) -> Exchange {
    let status = received.status
    lease?.endWithoutSharing(isTypical: status != 304 && status < 500)
    var response = response(received, unstored(received), source: origin)
    response.change {
      $0.validation = selectsStored ? .modified : .notAttempted
      $0.isShareable = isShareable
    }
    guard !request.destination.isStream else { return response }
    if request.acceptedStatuses.contains(status), !request.destination.isStore {
      guard takeWholeBody(of: received) == nil else { return response }
      response.recording = RecordingBody(received.response.body, for: request, reservation: received.reservation)
    } else {
      received.reservation?.release()
      drain(received.response.body)
      response.body = .none
    }
    return response
  }

  @inline(never)
  private func refusePart(_ received: ReceivedResponse) async throws(CacheError) -> Exchange {
    received.response.body.source.cancel()
    received.reservation?.release()
    let error = CacheError(
      .malformedResponse, reason: "the server answered 206 (partial content) to a request without a range",
      response: received.head, attempt: received.metrics(at: request.clock.uptime).attempts)
    return try await serveFallback(for: error, sent: received.sent, requestTime: received.requestTime)
  }

  @inline(never)
  private func serveStale(_ index: Int, _ received: ReceivedResponse) async throws(CacheError) -> Exchange {
    let head = received.head
    leader?.endWithoutSharing(.success(head), isTypical: false)
    lease?.endWithoutSharing(isTypical: false)
    let attempts = received.metrics(at: request.clock.uptime).attempts
    if request.destination.isStream {
      guard let stale = try await staleResponse(index, insteadOf: .success(head), attempt: attempts) else {
        return response(received, unstored(received), source: origin)
      }
      received.response.body.source.cancel()
      return stale
    }
    received.response.body.source.cancel()
    received.reservation?.release()
    guard let stale = try await staleResponse(index, insteadOf: .success(head), attempt: attempts) else {
      throw .unacceptable(head, now: request.clock.now, attempt: attempts)
    }
    return stale
  }

  // MARK: Parts

  private var origin: ResourceSource { request.isFromSchemeHandler ? .schemeHandler : .network }

  /// - Parameter key: The key under which the response is stored, or `nil` if it is not stored.
  private func response(
    _ received: ReceivedResponse, _ metadata: StoredMetadata, source: ResourceSource, storedAs key: CacheKey? = nil
  ) -> Exchange {
    Exchange(
      .init(
        request: request, hop: hop, head: received.head, body: received.response.body, source: source, status: forwarded(nil),
        key: key ?? CacheKey(resource: cache.resource), metadata: metadata, isStored: key != nil, received: received,
        reservation: received.reservation))
  }

  /// The metadata of a response that is not stored.
  private func unstored(_ received: ReceivedResponse) -> StoredMetadata {
    var request = head
    request.headerFields = [:]
    let now = self.request.clock.now
    return StoredMetadata(
      request: request, response: received.head, requestTime: received.requestTime, responseTime: now, revision: .random(),
      freshness: Freshness(generatedAt: now - (received.head.headerFields.statedAge ?? .zero), freshUntil: now))
  }

  private func apply(_ changes: StoreChanges) async {
    guard changes != .none else { return }
    await cache.apply(changes, to: candidates, of: head)
    // The response to a HEAD may have made stored parts stale (RFC 9111 §4.3.5). No request then joins their readers.
    let now = request.clock.now
    if head.method == .head,
      changes.updates.contains(where: { $1.response.status == .partialContent && $1.freshness.freshUntil <= now })
    {
      request.parts.outdate(self)
    }
  }

  /// Carries out the changes except for removals, which happen when the new response is stored.
  @inline(never)
  private func applyWithoutDrops(_ changes: StoreChanges) async {
    await apply(StoreChanges(updates: changes.updates, invalidations: changes.invalidations))
  }

  /// Reads the end of a 304, which has no content (RFC 9110 §15.4.5). Its connection can then be reused, and its metrics are
  /// complete. Other bodies may be slow, so they are cancelled.
  @inline(never)
  private func finish(_ received: ReceivedResponse) async throws(CacheError) {
    let response = received.response
    defer { response.body.source.cancel() }
    guard response.head.status == .notModified else { return }
    do throws(CacheError) {
      _ = try await response.body.source.next()
    } catch {
      // The head has all the information.
      if Task.isCancelled { throw .cancelled }
    }
  }

  /// Reads a short unwanted body to its end, so that its connection can be reused. A long body is cancelled instead.
  ///
  /// The load does not wait for this, so its deadline does not apply. A separate deadline prevents a slow server from holding the
  /// connection.
  private func drain(_ body: ResourceBody) {
    guard body.data == nil, let length = body.length, length <= 16 << 10 else { return body.source.cancel() }
    let clock = request.clock
    Task.detached(priority: .utility) {
      let deadline = Task {
        guard (try? await clock.sleep(for: .seconds(5))) != nil else { return }
        body.source.cancel()
      }
      _ = try? await body.collect(limit: 16 << 10)
      deadline.cancel()
      body.source.cancel()
    }
  }
}
