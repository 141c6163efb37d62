internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// Carrying out what the validator says about an answer.
extension Exchange {
  func carryOut(_ verdict: ValidationVerdict, _ answer: Answer) async throws(CacheError) -> LoadOutcome? {
    switch verdict {
    case .update(let index, let metadata, let changes):
      try await finish(answer.response)
      answer.share.release()
      await apply(changes)
      return try await freshen(candidates[index], metadata, changes.copy, answer)
    case .store(let variant, let metadata, let changes):
      // A part is nothing that a resource can be made of.
      guard metadata.response.status != .partialContent else { return try await pass(.none, true, answer) }
      let outdated = changes.drops.map { candidates[$0] }
      await apply(StoreChanges(updates: changes.updates, invalidations: changes.invalidations))
      guard load.standing == .mirror else { return try await store(metadata, variant, replacing: outdated, answer) }
      // An error, or a way to somewhere else, is the mirror's own affair.
      guard load.isResult(answer.response.head) else { return try await pass(.none, true, answer) }
      var unlabelled = metadata
      unlabelled.response.headerFields[.eTag] = nil
      unlabelled.response.headerFields[.lastModified] = nil
      return try await store(unlabelled, variant, replacing: isAbout.map { [candidates[$0]] } ?? [], answer)
    case .pass(let changes, let isShareable):
      return try await pass(changes, isShareable, answer)
    case .refetch, .complete:
      try await finish(answer.response)
      return nil
    case .serveStale(let index):
      answer.response.body.source.cancel()
      answer.share.release()
      let error = Fetch.unacceptable(answer.response.head.status, attempt: metrics(of: answer).attempts)
      guard let stale = try await stale(index, insteadOf: error) else { throw error }
      return stale
    }
  }

  @inline(never)
  private func freshen(
    _ stored: Candidate, _ metadata: StoredMetadata, _ copy: StoreChanges.Copy?, _ answer: Answer
  ) async throws(CacheError) -> LoadOutcome? {
    guard let kept = try await cache.read(stored) else { return nil }
    var confirmed = metadata
    // An end that the validator has set (an error's lifetime, say) is not put off.
    if case .at = metadata.expiration {
      confirmed.expiration = .earlier(metadata.expiration, load.expiration, from: metadata.responseTime)
    } else {
      confirmed.expiration = load.expiration ?? metadata.expiration
    }
    var candidate = stored
    candidate.metadata = confirmed
    await cache.freshen(candidate, data: kept.isBodyLeft ? nil : kept.data)
    if let copy, load.target.isMemory, !kept.isBodyLeft {
      _ = await load.writeDeadline.wait(load) { [cache, candidates] in await cache.file(copy, kept.data, known: candidates) }
    }
    let confirmedOne = fetched(kept.data, candidate, answer, source: .revalidated, validation: .notModified, kept.share)
    guard kept.isBodyLeft else { return confirmedOne }
    return confirmedOne.with { ($0.isBodyLeft, $0.encoded) = (true, kept.encoded) }
  }

  @inline(never)
  private func store(
    _ metadata: StoredMetadata, _ variant: String, replacing outdated: [Candidate], _ answer: Answer
  ) async throws(CacheError) -> LoadOutcome {
    let cache = hop.request.method == .get ? cache : cache.begunAnew()
    var candidate = Candidate(key: CacheKey(resource: hop.resource, variant: variant), metadata: metadata)
    candidate.metadata.expiration = .earlier(metadata.expiration, load.expiration, from: metadata.responseTime)
    // Announced, so that a store that is too small for it can say so before it has taken half of it.
    candidate.metadata.bodyLength = answer.response.body.length
    // A way to somewhere else is no original of a value.
    let keepsOriginal = load.demand?.keepsOriginal ?? true || !load.isResult(metadata.response)
    let receiver = Receiver(
      load: load, body: answer.response.body, writer: keepsOriginal ? try await cache.writer(candidate) : nil, key: candidate.key,
      share: answer.share, isWanted: { [cache, candidate] in cache.surviving(candidate) != nil }, report: hop.fetch.report)
    let received = try await receiver.receive()
    candidate.metadata.bodyLength = received.count
    let complete = candidate
    let outcome = await load.writeDeadline.wait(load) { [candidates, load] () -> Result<Candidate, CacheError> in
      do throws(CacheError) {
        var candidate = complete
        var committed = try await receiver.commit(received)
        if !keepsOriginal, load.demand?.keepsOriginal == true { committed = await cache.keepOriginal(received.data, candidate) }
        if let committed { candidate.metadata = committed }
        await cache.store(received.data, candidate, isOnDisk: committed != nil, replacing: outdated, known: candidates)
        return .success(candidate)
      } catch {
        return .failure(error)
      }
    }
    if let outcome { candidate = try outcome.get() } else { cache.keepEarly(received.data, candidate) }
    return fetched(
      received.data, candidate, answer, source: origin, validation: isAbout == nil ? .notAttempted : .modified, answer.share)
  }

  @inline(never)
  private func pass(
    _ changes: StoreChanges, _ isShareable: Bool, _ answer: Answer
  ) async throws(CacheError) -> LoadOutcome {
    await apply(changes)
    let head = answer.response.head
    var (data, count) = (Data(), Int64(0))
    if load.acceptedStatuses.contains(head.status.code), !load.target.isStore {
      let receiver = Receiver(
        load: load, body: answer.response.body, writer: nil, key: CacheKey(resource: hop.resource),
        share: answer.share, report: hop.fetch.report)
      let received = try await receiver.receive()
      (data, count) = (received.data, received.count)
    } else {
      answer.share.release()
      drain(answer.response.body)
    }
    var request = hop.request
    request.headerFields = [:]
    let now = load.clock.now
    let metadata = StoredMetadata(
      request: request, response: head, requestTime: answer.requestTime, responseTime: now, bodyLength: count,
      revision: .random(), freshness: Freshness(generatedAt: now - Self.statedAge(head), freshUntil: now))
    return fetched(
      data, Candidate(key: CacheKey(resource: hop.resource), metadata: metadata), answer, source: origin,
      validation: isAbout == nil ? .notAttempted : .modified, answer.share
    ).with {
      $0.isShareable = isShareable
      $0.isStored = false
    }
  }

  private func apply(_ changes: StoreChanges) async { await cache.apply(changes, to: candidates, of: hop.request) }

  /// Reads the end of a 304, which has no content (RFC 9110 §15.4.5): then its connection can be used again, and its metrics are
  /// complete.
  @inline(never)
  private func finish(_ response: DownloadResponse) async throws(CacheError) {
    defer { response.body.source.cancel() }
    guard response.head.status == .notModified else { return }
    do throws(CacheError) {
      _ = try await response.body.source.next()
    } catch {
      // The head said all there is to say.
      if Task.isCancelled { throw .cancelled }
    }
  }

  /// A short body of an answer that is not wanted is read, so that its connection can be used again; a long one is not worth
  /// that.
  ///
  /// Behind the load's back: its caller does not wait for what it will not get. So no deadline of the load's ends it, and it has
  /// one of its own: a server that drips would keep the connection, and its place among those that the limits allow, for as long
  /// as it likes.
  private func drain(_ body: ResourceBody) {
    guard body.data == nil, let length = body.length, length <= 16 << 10 else { return body.source.cancel() }
    let clock = load.clock
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

  /// The age that the answer states for itself (RFC 9111 §5.1).
  private static func statedAge(_ head: HTTPResponse) -> Duration {
    guard let seconds = head.headerFields[.age].flatMap({ Int64($0) }), seconds > 0 else { return .zero }
    return .seconds(min(seconds, 1 << 31))
  }

  private var origin: ResourceSource { load.isProvided ? .schemeHandler : .network }

  private func fetched(
    _ data: Data, _ candidate: Candidate, _ answer: Answer, source: ResourceSource, validation: RevalidationOutcome,
    _ share: MemoryReservation?
  ) -> LoadOutcome {
    LoadOutcome(
      .init(
        data: data, metadata: candidate.metadata, key: candidate.key, url: hop.step.url, redirects: hop.step.chain,
        source: source, validation: validation, timeToHead: answer.timeToHead, metrics: metrics(of: answer), share: share))
  }
}
