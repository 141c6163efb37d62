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
    guard let downloader = load.downloader else { throw unservable(sent) }
    let requestTime = load.clock.now
    let start = load.clock.uptime
    load.observe(.requestSent(url: hop.url.absoluteString, conditional: isConditional(sent)))
    let answer: Answer
    do throws(CacheError) {
      let response = try await downloader.download(
        DownloadRequest(head: sent, priority: hop.fetch.priority, idleTimeout: load.idleTimeout))
      answer = Answer(sent: sent, response: response, requestTime: requestTime, timeToHead: load.clock.uptime - start)
    } catch {
      return try await standIn(for: error, sent: sent, requestTime: requestTime)
    }
    load.observe(.responseReceived(url: hop.url.absoluteString, status: answer.response.head.status.code))
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
      guard let kept = await shelf.read(candidates[index]) else {
        await shelf.drop([candidates[index]])
        return nil
      }
      var confirmed = metadata
      confirmed.expiration = load.expiration ?? metadata.expiration
      let candidate = Candidate(key: candidates[index].key, metadata: confirmed)
      await shelf.freshen(candidate, data: kept.data)
      return fetched(kept.data, candidate, answer, source: .revalidated, validation: .reused)
    case .store(let variant, var metadata, let dropping):
      // A validator that limits what it stores (an error's lifetime, say) has the last word.
      metadata.expiration = metadata.expiration ?? load.expiration
      let candidate = Candidate(key: CacheKey(resource: hop.resource, variant: variant), metadata: metadata)
      let outdated = dropping.map { candidates[$0] }.filter { $0.key != candidate.key }
      return try await store(candidate, outdated, answer)
    case .pass(let invalidated, let isShareable):
      return try await pass(invalidated, isShareable, answer)
    case .refetch:
      answer.response.body.source.cancel()
      return nil
    case .serveStale(let index):
      answer.response.body.source.cancel()
      guard let stale = await stale(index) else { throw Fetch.unacceptable(answer.response.head.status) }
      return stale
    }
  }

  private func store(
    _ candidate: Candidate, _ outdated: [Candidate], _ answer: Answer
  ) async throws(CacheError) -> Fetched {
    let receiver = Receiver(
      load: load, body: answer.response.body, writer: await shelf.writer(candidate), key: candidate.key,
      report: hop.fetch.report)
    let (data, committed) = try await receiver.receive()
    var complete = candidate
    complete.metadata.bodyLength = Int64(data.count)
    if let committed { complete.metadata = committed }
    shelf.remember(data, complete)
    await shelf.drop(outdated)
    return fetched(data, complete, answer, source: origin, validation: candidates.isEmpty ? .none : .fresh)
  }

  private func pass(
    _ invalidated: [String], _ isShareable: Bool, _ answer: Answer
  ) async throws(CacheError) -> Fetched {
    for uri in invalidated { await invalidate(uri) }
    let head = answer.response.head
    let data: Data
    if load.acceptedStatuses.contains(head.status.code) {
      let receiver = Receiver(
        load: load, body: answer.response.body, writer: nil, key: CacheKey(resource: hop.resource), report: hop.fetch.report)
      data = try await receiver.receive().data
    } else {
      await drain(answer.response.body)
      data = Data()
    }
    var request = hop.request
    request.headerFields = [:]
    let now = load.clock.now
    let metadata = StoredMetadata(
      request: request, response: head, requestTime: answer.requestTime, responseTime: now, bodyLength: Int64(data.count),
      revision: .mint(), facts: CachingFacts(bornAt: now, freshUntil: now))
    var fetched = fetched(
      data, Candidate(key: CacheKey(resource: hop.resource), metadata: metadata), answer, source: origin,
      validation: candidates.isEmpty ? .none : .fresh)
    fetched.isShareable = isShareable
    return fetched
  }

  /// Removes what is stored under a URI, in the caller's partition; the request's own URI stands for the caller's own key where there is one.
  private func invalidate(_ uri: String) async {
    let isOwn = ResourceID.uri(of: hop.request) == uri
    let resource = isOwn ? hop.resource : ResourceID.make(uri: uri, partition: load.partition)
    do throws(CacheError) {
      try await Shelf(load: load, resource: resource).removeAll(from: load.writes)
    } catch {
      load.observe(.storeFailed(key: CacheKey(resource: resource), error: error))
    }
  }

  /// A short body of an answer that is not wanted is read, so that its connection can be used again; a long one is not worth that.
  private func drain(_ body: Body) async {
    if let length = body.length, length <= 16 << 10 { _ = try? await body.collect(limit: 16 << 10) }
    body.source.cancel()
  }

  /// A stored answer in place of one that did not come, where that is allowed.
  private func standIn(
    for error: CacheError, sent: HTTPRequest, requestTime: Timestamp
  ) async throws(CacheError) -> Fetched {
    guard !error.isCancellation, !Task.isCancelled else { throw .cancelled }
    if case .serveStale(let index) = judge(.failure(error), sent: sent, requestTime: requestTime), let stale = await stale(index)
    {
      return stale
    }
    throw error
  }

  private func stale(_ index: Int) async -> Fetched? {
    guard let kept = await shelf.read(candidates[index]) else { return nil }
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
