internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// One request on the network and what follows from its answer.
struct Exchange: Sendable {
  let hop: Hop
  let candidates: [Candidate]
  let fallback: Int?
  /// The stored answer that the request selects, fresh or not: what a new answer takes the place of.
  let isAbout: Int?

  private var load: ResolvedLoad { hop.load }
  private var shelf: Shelf { hop.shelf }

  /// What was sent, when, and what came back.
  private struct Answer {
    var sent: HTTPRequest
    var response: DownloadResponse
    var requestTime: Timestamp
    var timeToHead: Duration
  }

  /// - Returns: nil when a 304 confirmed nothing that can be shown: the request has to be sent once more, without conditions.
  func run(_ sent: HTTPRequest) async throws(CacheError) -> Fetched? {
    let requestTime = load.clock.now
    let start = load.clock.uptime
    guard let downloader = load.downloader else {
      return try await standIn(for: unservable(sent), sent: sent, requestTime: requestTime)
    }
    let address = ResolvedLoad.address(of: hop.url)
    load.observe(.requestSent(url: address, conditional: isConditional(sent)))
    let answer: Answer
    do throws(CacheError) {
      let response = try await downloader.download(
        DownloadRequest(head: sent, priority: hop.fetch.priority, idleTimeout: load.idleTimeout, mayShare: false))
      answer = Answer(sent: sent, response: response, requestTime: requestTime, timeToHead: load.clock.uptime - start)
    } catch {
      return try await standIn(for: error, sent: sent, requestTime: requestTime)
    }
    load.observe(.responseReceived(url: address, status: answer.response.head.status.code))
    do throws(CacheError) {
      return try await carryOut(judge(.success(answer.response.head), sent: sent, requestTime: requestTime), answer)
    } catch {
      answer.response.body.source.cancel()
      // The head came and the body did not: as good as no answer.
      guard error.isUnreachable else { throw error }
      return try await standIn(for: error, sent: sent, requestTime: requestTime)
    }
  }

  private func judge(
    _ answer: Result<HTTPResponse, CacheError>, sent: HTTPRequest, requestTime: Timestamp
  ) -> ValidationVerdict {
    Planner(load).judge(
      answer, to: hop.request, sent: sent, fallback: fallback, stored: candidates.map(\.metadata), requestTime: requestTime)
  }

  private func carryOut(_ verdict: ValidationVerdict, _ answer: Answer) async throws(CacheError) -> Fetched? {
    switch verdict {
    case .freshen(let index, let metadata):
      answer.response.body.source.cancel()
      guard let kept = try await shelf.read(candidates[index]) else { return nil }
      var confirmed = metadata
      // An end that the validator has set (an error's lifetime, say) is not put off.
      if case .at = metadata.expiration {
        confirmed.expiration = .earlier(metadata.expiration, load.expiration, from: metadata.responseTime)
      } else {
        confirmed.expiration = load.expiration ?? metadata.expiration
      }
      let candidate = Candidate(key: candidates[index].key, metadata: confirmed)
      await shelf.freshen(candidate, data: kept.data)
      return fetched(kept.data, candidate, answer, source: .revalidated, validation: .reused)
    case .store(let variant, var metadata, let dropping):
      metadata.expiration = .earlier(metadata.expiration, load.expiration, from: metadata.responseTime)
      let candidate = Candidate(key: CacheKey(resource: hop.resource, variant: variant), metadata: metadata)
      return try await store(candidate, replacing: dropping.map { candidates[$0] }, answer)
    case .pass(let invalidated, let isShareable):
      return try await pass(invalidated, isShareable, answer)
    case .refetch:
      answer.response.body.source.cancel()
      return nil
    case .serveStale(let index):
      answer.response.body.source.cancel()
      guard let stale = try await stale(index) else { throw Fetch.unacceptable(answer.response.head.status) }
      return stale
    }
  }

  private func store(
    _ candidate: Candidate, replacing outdated: [Candidate], _ answer: Answer
  ) async throws(CacheError) -> Fetched {
    var complete = candidate
    // Announced, so that a store that is too small for it can say so before it has taken half of it.
    complete.metadata.bodyLength = answer.response.body.length
    let receiver = Receiver(
      load: load, body: answer.response.body, writer: try await shelf.writer(complete), key: candidate.key,
      report: hop.fetch.report)
    let received = try await receiver.receive()
    complete.metadata.bodyLength = received.count
    if let committed = received.committed { complete.metadata = committed }
    await shelf.store(
      received.data, complete, isOnDisk: received.committed != nil, replacing: outdated, known: candidates)
    return fetched(received.data, complete, answer, source: origin, validation: isAbout == nil ? .none : .fresh)
  }

  private func pass(
    _ invalidated: [String], _ isShareable: Bool, _ answer: Answer
  ) async throws(CacheError) -> Fetched {
    for uri in invalidated { await invalidate(uri) }
    let head = answer.response.head
    var (data, count) = (Data(), Int64(0))
    if load.acceptedStatuses.contains(head.status.code), !load.target.isStore {
      let receiver = Receiver(
        load: load, body: answer.response.body, writer: nil, key: CacheKey(resource: hop.resource), report: hop.fetch.report)
      let received = try await receiver.receive()
      (data, count) = (received.data, received.count)
    } else {
      drain(answer.response.body)
    }
    var request = hop.request
    request.headerFields = [:]
    let now = load.clock.now
    let metadata = StoredMetadata(
      request: request, response: head, requestTime: answer.requestTime, responseTime: now, bodyLength: count,
      revision: .mint(), facts: CachingFacts(bornAt: now - Self.statedAge(head), freshUntil: now))
    var fetched = fetched(
      data, Candidate(key: CacheKey(resource: hop.resource), metadata: metadata), answer, source: origin,
      validation: isAbout == nil ? .none : .fresh)
    fetched.isShareable = isShareable
    fetched.isStored = false
    return fetched
  }

  /// Removes what is stored under a URI, in the caller's partition; for the request's own URI also what is stored under the caller's own key.
  private func invalidate(_ uri: String) async {
    var resources: Set = [ResourceID.make(uri: uri, partition: load.partition)]
    if ResourceID.uri(of: hop.request) == uri { resources.insert(hop.resource) }
    for resource in resources {
      do throws(CacheError) {
        // In every layer, whatever may be written: what is outdated must not be shown (RFC 9111 §4.4).
        try await Shelf(load: load, resource: resource).removeAll(from: .all)
      } catch {
        load.observe(.storeFailed(key: CacheKey(resource: resource), error: error))
      }
    }
  }

  /// A short body of an answer that is not wanted is read, so that its connection can be used again; a long one is not worth that.
  ///
  /// Behind the load's back: its caller does not wait for what it will not get.
  private func drain(_ body: Body) {
    guard body.data == nil, let length = body.length, length <= 16 << 10 else { return body.source.cancel() }
    Task.detached(priority: .utility) {
      _ = try? await body.collect(limit: 16 << 10)
      body.source.cancel()
    }
  }

  /// The age that the answer states for itself (RFC 9111 §5.1).
  private static func statedAge(_ head: HTTPResponse) -> Duration {
    guard let seconds = head.headerFields[.age].flatMap({ Int64($0) }), seconds > 0 else { return .zero }
    return .seconds(min(seconds, 1 << 31))
  }

  /// A stored answer in place of one that did not come, where that is allowed.
  private func standIn(
    for error: CacheError, sent: HTTPRequest, requestTime: Timestamp
  ) async throws(CacheError) -> Fetched {
    guard !error.isCancellation, !Task.isCancelled else { throw .cancelled }
    if case .serveStale(let index) = judge(.failure(error), sent: sent, requestTime: requestTime),
      let stale = try await stale(index)
    {
      return stale
    }
    throw error
  }

  private func stale(_ index: Int) async throws(CacheError) -> Fetched? {
    guard let kept = try await shelf.read(candidates[index]) else { return nil }
    var fetched = hop.usable(kept, candidates[index])
    fetched.validation = .failed
    return fetched
  }

  private var origin: ResourceSource { load.isProvided ? .provider : .network }

  private func isConditional(_ sent: HTTPRequest) -> Bool {
    sent.headerFields[.ifNoneMatch] != nil || sent.headerFields[.ifModifiedSince] != nil
  }

  private func unservable(_ sent: HTTPRequest) -> CacheError {
    let scheme = sent.scheme ?? ""
    guard scheme != "http", scheme != "https" else {
      return CacheError(.noDownloader, reason: "not in the cache, and there is no downloader to ask")
    }
    return CacheError(.unsupportedScheme, reason: "nobody here loads \(scheme): URLs")
  }

  private func fetched(
    _ data: Data, _ candidate: Candidate, _ answer: Answer, source: ResourceSource, validation: ETagValidationResult
  ) -> Fetched {
    Fetched(
      data: data, metadata: candidate.metadata, key: candidate.key, url: hop.url, redirects: hop.chain, source: source,
      validation: validation, timeToHead: answer.timeToHead, bytesOnWire: answer.response.metrics().bytesOnWire)
  }
}
