internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// Combines stored parts with parts from the origin (RFC 9111 §3.3, §3.4).
extension Fetch {
  /// Whether the caller permits a request to the origin.
  var permitsRequest: Bool { request.policy != .cacheOnly && !head.hasDirective("only-if-cached") }

  /// Returns the response that is combined from parts, or `nil` if the origin has another state or does not confirm the parts.
  /// The caller's own request is then sent. The requests that wait for this one share its body if it is stored as the whole.
  ///
  /// - Parameters:
  ///   - live: The parts.
  ///   - requiresValidation: Whether the origin must confirm the parts first.
  @inline(never)
  func combined(_ live: LiveParts, requiresValidation: Bool) async throws(CacheError) -> Exchange? {
    let planned = reply(from: live.whole)
    let wanted: Range<Int64>
    switch planned.content {
    case .none:
      let candidate = Candidate(key: key(of: live), metadata: live.whole)
      return exchange(candidate, planned.head, .init(body: .none, source: partSource), hit(live.whole))
    case .whole: wanted = 0..<live.length
    case .range(let bytes): wanted = bytes
    }
    let isOpenEnded = request.destination.isStream && head.simpleRange.map { $0.last == nil } ?? false
    let hasAll = live.firstMissing(in: wanted) == nil
    let isComplete = hasAll && !requiresValidation
    var fetch = self
    if hasAll, requiresValidation { fetch.reason = live.whole.freshness.isFresh(at: request.clock.now) ? .request : .stale }
    let body = CombinedBody(fetch, live, wanted, isWhole: planned.content == .whole, isOpenEnded: isOpenEnded)
    do throws(CacheError) {
      guard try await body.begin(requiresValidation: requiresValidation) else { return nil }
    } catch {
      // The request itself gets the new state, or the response of an origin that fails.
      guard !error.isCancellation, error.response != nil else { throw error }
      return nil
    }
    // A part that has arrived has later fields.
    let (whole, reply) = (live.whole, reply(from: live.whole))
    guard reply.content == planned.content else { return nil }
    let content = ResourceBody(length: wanted.upperBound - wanted.lowerBound, source: body)
    var metadata = whole
    metadata.revision = .random()
    var status = isComplete ? hit(whole) : fetch.forwarded(206)
    if !isComplete {
      status.isStored = live.mayBeStored && (request.hasStore || request.hasMemory)
      status.lifetimeLeft = lifetimeLeft(whole)
    }
    var response = Exchange(
      .init(
        request: request, hop: hop, head: reply.head, body: content, source: isComplete ? partSource : .network, status: status,
        key: key(of: live), metadata: metadata, isStored: true))
    if body.storesWhole, live.mayBeStored || !request.destination.isStream {
      if let leader {
        body.share(by: leader)
        leader.responseArrived(metadata.freshness)
      }
      try await record(content, live, metadata, as: &response)
    } else {
      leader?.endWithoutSharing(.success(reply.head), isTypical: false)
    }
    return response
  }

  private func key(of live: LiveParts) -> CacheKey { CacheKey(resource: cache.resource, variant: live.variant) }

  /// The source of stored parts.
  private var partSource: ResourceSource { request.hasStore ? .disk : .memory }

  /// Requests a part, and receives it in a task of its own.
  ///
  /// - Parameter isStored: Whether it is stored while it arrives.
  func run(_ transfer: PartTransfer, of live: LiveParts, isStored: Bool) {
    let bytes = transfer.bytes
    transfer.run(on: request.downloader?.preferredExecutor) { () throws(CacheError) in
      // Loads that the downloader starts must not wait for the memory that the load of this part has reserved.
      try await MemoryBudget.insideLoad { () async throws(CacheError) in
        try await part(bytes, of: live, isStored: isStored)
      }
    } ended: { response in
      let part = response.flatMap { $0.recording?.isStored == true ? Candidate(key: $0.key, metadata: $0.metadata) : nil }
      let isOutdated = live.ended(transfer, storedAs: part, transfer.bytes.upperBound - transfer.start)
      guard let part else { return }
      // In a task of its own, which does not hold the bytes of the transfer.
      Task.detached(priority: .utility) { await isOutdated ? cache.drop([part]) : mergeParts(of: live) }
    }
  }

  /// Sends the request for missing bytes. It has the fields of this reader, and none of another one.
  ///
  /// - Throws: An error with the response if it is not the wanted part. If it shows another state of the resource, the stored
  ///   parts are removed.
  private func part(_ bytes: Range<Int64>, of live: LiveParts, isStored: Bool) async throws(CacheError) -> Exchange {
    if let opened = live.takeOpened(at: bytes.lowerBound) { return opened }
    var fetch = requesting(bytes, isStored: isStored)
    // The parts that were stored since the lookup count too.
    fetch.candidates = live.candidates(beside: candidates)
    var sent = fetch.head
    live.restrict(&sent)
    let response = try await fetch.send(sent)
    let received = response.received
    guard let received, live.accepts(received.head, received.response.body.length, from: bytes.lowerBound) else {
      response.body.source.cancel()
      // Other statuses, such as 401 and 503, say nothing about the state of the resource.
      guard [200, 206, 404, 410, 416].contains(response.head.status.code) else {
        throw .unacceptable(response.head, now: request.clock.now)
      }
      await cache.drop(live.becomeOutdated())
      throw CacheError(.bodyInterrupted, reason: "the resource changed while its parts were combined", response: response.head)
    }
    live.update(whole(with: response, of: live))
    return response
  }

  /// Returns the metadata of the whole response after a part has arrived, or `nil` if the part must not be stored, or if other
  /// fields of the request select now. Its fields are then for this request alone.
  private func whole(with part: Exchange, of live: LiveParts) -> StoredMetadata? {
    guard part.isStored, let combination = combination(of: part.metadata), combination.variant == live.variant else { return nil }
    return combination.whole
  }

  /// Returns the combination of which a part that has just arrived is the only one.
  private func combination(of part: StoredMetadata) -> PartCombination? {
    var whole = head.withoutRange
    whole.headerFields[.cacheControl] = nil
    // A part never satisfies a request for the whole, so the plan combines it.
    guard case .combine(var combination) = planner.plan(whole, validatedMeanwhile: part) else { return nil }
    combination.whole.freshness = part.freshness
    return combination
  }

  /// Returns the request of an HTTP caller for these bytes, with the same components and without the caller's conditions.
  ///
  /// - Parameters:
  ///   - isFirst: Whether the response to the request begins the caller's response.
  ///   - isStored: Whether the part is stored while it arrives.
  private func requesting(_ bytes: Range<Int64>, isFirst: Bool = false, isStored: Bool = true) -> Fetch {
    let part = head.withoutRange.with(range: bytes)
    let settings = request.with {
      if self.hop == nil { $0.head = part }
      $0.destination = .stream
      $0.staleFallback = .never
      // Several readers can share a piece.
      if !isFirst { $0.onInterimResponse = nil }
      if !isStored { $0.writes = [] }
    }
    let hop = self.hop.map { RedirectHop(request: part, url: $0.url, chain: $0.chain) }
    var fetch = Fetch(settings, at: hop, priority, cache.seen(by: settings))
    (fetch.candidates, fetch.mayWaitForLease) = (candidates, false)
    fetch.reason = [.stale, .request].contains(reason) ? reason : .partial
    return fetch
  }

  /// Returns some of the bytes of a stored part, or `nil` if it cannot be read.
  func storedBytes(of candidate: Candidate, _ bytes: Range<Int64>) async throws(CacheError) -> ResourceBody? {
    let reader = request.destination.isStream ? cache : cache.seen(by: request.with { $0.destination = .stream })
    return try await reader.content(of: candidate, priority, .range(bytes))?.body
  }

  /// Returns the stored responses of the resource.
  func storedNow() async throws(CacheError) -> [Candidate] {
    guard request.hasStore else { return cache.responsesInMemory() }
    return try await cache.lookUp(head, readsAllLayers: true).candidates
  }

  // MARK: Merging

  /// Makes one part of several that follow each other, when there are many. Lookups read the head of each part.
  private func mergeParts(of live: LiveParts) async {
    guard let run = live.beginMerging(upTo: request.hasStore ? .max : request.maximumBodyInMemory), let first = run.first,
      let last = run.last
    else { return }
    let bytes = first.bytes.lowerBound..<last.bytes.upperBound
    let former = run.map(\.candidate)
    let merged: Result<Candidate?, CacheError>
    do throws(CacheError) {
      merged = .success(try await merge(run, bytes, of: live))
    } catch {
      merged = .failure(error)
      if error.code != .entryTooLarge, !error.isCancellation { request.observe(.storeFailed(key: key(of: live), error: error)) }
    }
    live.endMerging(as: merged, bytes, instead: former)
    if case .failure(let error) = merged, error.code == .entryTooLarge { return await mergeParts(of: live) }
    if case .success(.some) = merged { await cache.drop(former) }
    // The whole response was stored meanwhile.
    if !live.isCurrent { await cache.drop(live.stored) }
  }

  private func merge(
    _ run: [(candidate: Candidate, bytes: Range<Int64>)], _ bytes: Range<Int64>, of live: LiveParts
  ) async throws(CacheError) -> Candidate? {
    let fetch = requesting(bytes)
    let now = request.clock.now
    // The validator describes the part as it would describe a response of the origin.
    let response = fetch.reply(from: live.whole).head
    guard response.status == .partialContent,
      case .store(let variant, let metadata, _) = fetch.planner.judge(
        .success(response), to: fetch.head, sent: fetch.head, fallback: nil, stored: [], requestTime: now, now: now)
    else { return nil }
    let sources = run.map { fetch.opening($0.candidate, $0.bytes.upperBound - $0.bytes.lowerBound) }
    let body = ResourceBody(length: bytes.upperBound - bytes.lowerBound, source: ConcatenatedBody(sources))
    guard request.hasStore else { return try await fetch.storeInMemory(body, variant, metadata) }
    return try await fetch.storeOnDisk(body, variant, metadata)
  }

  /// Stores a merged part in memory. Returns `nil` if memory has no room for it.
  private func storeInMemory(_ body: ResourceBody, _ variant: String, _ metadata: StoredMetadata) async throws(CacheError)
    -> Candidate?
  {
    guard let length = body.length, length <= request.maximumBodyInMemory,
      let reservation = request.budget.streamReservation(holding: Int(length))
    else { return nil }
    defer { reservation.release() }
    let part = entry(variant, metadata, replacing: [], in: cache, length).candidate
    cache.storeInMemory(try await body.collect(limit: length), part, replacing: [])
    return cache.isInMemory(part) ? part : nil
  }

  /// Returns a closure that opens a stored part.
  private func opening(_ candidate: Candidate, _ length: Int64) -> ConcatenatedBody.Opening {
    { @Sendable () async throws(CacheError) -> ResourceBody? in try await storedBytes(of: candidate, 0..<length) }
  }
}

/// Opens the parts of a representation that is not known yet, or joins one that others read.
extension Fetch {
  /// Whether a representation may still be joined: it is current, and was not purged since its first request.
  func mayJoin(_ live: LiveParts) -> Bool {
    live.isCurrent && !request.invalidations.mayHaveMatched(cache.resource, since: live.logPosition)
  }

  /// Whether the caller may use a representation.
  ///
  /// - Parameter isEarly: Whether the request arrived before the response. It then needs no validation of its own.
  func isSatisfied(by live: LiveParts, isEarly: Bool) -> Bool {
    let plan = isEarly ? planner.plan(head, validatedMeanwhile: live.whole) : planner.plan(head, stored: [live.whole])
    guard case .use(_, nil) = plan else { return false }
    return true
  }

  /// The first piece of the caller's range, or `nil` if the range cannot be divided.
  ///
  /// A range at the end (`bytes=-500`) begins at an unknown position. One with `If-Range` may lead to the whole response. If a
  /// stored response is revalidated, a 304 is shorter than any piece.
  ///
  /// - Parameter sent: The request that the plan sends.
  func firstPiece(of sent: HTTPRequest) -> Range<Int64>? {
    guard request.validator?.combinesParts == true, request.role == .original, request.collapseTimeout != nil,
      !request.writes.isEmpty, head.method == .get, request.policy != .reload, !selectsStored,
      !sent.headerFields.contains(where: { ConfidentialFields.conditions.contains($0.name) }), !head.hasDirective("no-store"),
      let range = head.simpleRange
    else { return nil }
    let length = range.last == nil ? LiveParts.PieceLength.shortest : LiveParts.PieceLength.longest
    let (most, overflows) = range.first.addingReportingOverflow(length)
    guard !overflows else { return nil }
    return range.first..<min(most, range.last.map { $0 + 1 } ?? .max)
  }

  /// Requests the first piece of a range, and opens its representation.
  ///
  /// - Returns: `nil` if the memory budget has no room for the piece.
  @inline(never)
  func open(_ bytes: Range<Int64>) async throws(CacheError) -> Opened? {
    guard let reservation = request.budget.streamReservation(holding: Int(bytes.upperBound - bytes.lowerBound)) else {
      return nil
    }
    var fetch = requesting(bytes, isFirst: true)
    fetch.reason = reason
    var sent = fetch.head
    sent.refusePlatformCodings()
    let response = try await fetch.send(sent)
    guard let received = response.received, received.head.isSinglePart, response.isStored,
      let range = ContentRange(received.head.headerFields), range.bytes.lowerBound == bytes.lowerBound,
      received.response.body.length == range.length, var combination = combination(of: response.metadata)
    else {
      reservation.release()
      return .response(response)
    }
    // The part is still arriving.
    combination.parts = []
    let opened = (bytes: bytes.clamped(to: range.bytes), response: response, reservation: reservation, request: head)
    return .parts(LiveParts(combination, [], logPosition: cache.logPosition, opened: opened))
  }

  /// The result of a request for the first piece of a range.
  enum Opened {
    case parts(LiveParts)
    /// The response is not a part that can be combined.
    case response(Exchange)
  }
}

extension HTTPRequest {
  /// Returns the request with a range of bytes.
  fileprivate func with(range: Range<Int64>) -> HTTPRequest {
    var request = self
    request.headerFields[.range] = "bytes=\(range.lowerBound)-\(range.upperBound - 1)"
    return request
  }

  /// The request without its range and its conditions.
  fileprivate var withoutRange: HTTPRequest {
    var request = self
    for name in ConfidentialFields.conditions + [.range] { request.headerFields[name] = nil }
    return request
  }

  /// Whether an origin cannot distinguish two requests for parts by their fields.
  func isLike(_ other: HTTPRequest) -> Bool {
    func compared(_ request: HTTPRequest) -> HTTPFields { request.comparedFields.filter { $0.name != .range } }
    return compared(self) == compared(other)
  }

  /// Whether `Cache-Control` may have a directive. Another directive may contain the name.
  func hasDirective(_ name: String) -> Bool {
    headerFields.contains { $0.name == .cacheControl && $0.value.lowercased().contains(name) }
  }

  /// The first byte of a single range, and the last one if the range states it. `nil` for other ranges.
  fileprivate var simpleRange: (first: Int64, last: Int64?)? {
    guard let text = headerFields.single(.range)?.value, text.lowercased().hasPrefix("bytes=") else { return nil }
    let ends = text.dropFirst(6).split(separator: "-", omittingEmptySubsequences: false)
    guard ends.count == 2, let first = Int64(digits: ends[0]) else { return nil }
    if ends[1].isEmpty { return (first, nil) }
    guard let last = Int64(digits: ends[1]), last >= first, last < .max else { return nil }
    return (first, last)
  }
}
