internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// Combines stored parts with parts from the origin (RFC 9111 §3.3, §3.4).
extension Fetch {
  /// Returns the response that is combined from parts, or `nil` if the origin has another state or does not confirm the parts.
  /// The caller's own request is then sent.
  ///
  /// - Parameters:
  ///   - live: The parts.
  ///   - requiresValidation: Whether the origin must confirm the parts first.
  @inline(never)
  func combined(_ live: LiveParts, requiresValidation: Bool) async throws(CacheError) -> Exchange? {
    let reply = reply(from: live.whole)
    let wanted: Range<Int64>
    var requiresValidation = requiresValidation
    switch reply.content {
    case .none:
      let candidate = Candidate(key: key(of: live), metadata: live.whole)
      return exchange(candidate, reply.head, .init(body: .none, source: .disk), hit(live.whole))
    case .whole:
      wanted = 0..<live.length
      // A whole body that breaks off, because the origin has another state, costs more than waiting for the first missing part.
      requiresValidation = true
    case .range(let bytes): wanted = bytes
    }
    let body = CombinedBody(self, live, wanted, isOpenEnded: request.destination.isStream && head.isOpenEndedRange)
    let isComplete = live.firstMissing(in: wanted) == nil
    do throws(CacheError) {
      try await body.begin(requiresValidation: requiresValidation)
    } catch {
      if error.isCancellation { throw error }
      return nil
    }
    let content = ResourceBody(length: wanted.upperBound - wanted.lowerBound, source: body)
    var metadata = live.whole
    metadata.revision = .random()
    var response = Exchange(
      .init(
        request: request, hop: hop, head: reply.head, body: content, source: isComplete ? .disk : .network,
        status: isComplete ? hit(live.whole) : forwarded(206), key: key(of: live), metadata: metadata, isStored: true))
    if !isComplete { response.status.isStored = request.hasStore || request.hasMemory }
    if case .whole = reply.content { try await record(content, live, metadata, as: &response) }
    return response
  }

  private func key(of live: LiveParts) -> CacheKey { CacheKey(resource: cache.resource, variant: live.variant) }

  /// Requests a part, and receives it in a task of its own. It is stored while it arrives.
  func run(_ transfer: PartTransfer, of live: LiveParts) {
    let bytes = transfer.bytes
    transfer.run(on: request.downloader?.preferredExecutor) { () throws(CacheError) in
      try await part(bytes, of: live)
    } ended: { result in
      let stored = try? result.get()
      live.ended(
        transfer, storedAs: stored.flatMap { $0.isStored ? Candidate(key: $0.key, metadata: $0.metadata) : nil },
        transfer.bytes.upperBound - transfer.start)
    } afterwards: {
      await joinParts(of: live)
    }
  }

  /// Sends the request for missing bytes.
  ///
  /// - Throws: `bodyInterrupted` if the origin has another state. The stored parts are then removed.
  private func part(_ bytes: Range<Int64>, of live: LiveParts) async throws(CacheError) -> Exchange {
    if let opened = live.takeOpened(at: bytes.lowerBound) { return opened }
    let response = try await requesting(bytes).send(live.request.with(range: bytes))
    guard let received = response.received, live.accepts(received.head, from: bytes.lowerBound) else {
      response.body.source.cancel()
      let status = response.head.status.code
      // An error says nothing about the state of the resource.
      if status == 429 || status >= 500 { throw .unacceptable(response.head, now: request.clock.now) }
      live.becomeOutdated()
      await cache.drop(live.stored)
      throw CacheError(.bodyInterrupted, reason: "the resource changed while its parts were combined", response: response.head)
    }
    return response
  }

  /// Returns the request of an HTTP caller for these bytes, with the same components.
  private func requesting(_ bytes: Range<Int64>) -> Fetch {
    let part = head.with(range: bytes)
    let settings = request.with {
      if self.hop == nil { $0.head = part }
      $0.destination = .stream
      $0.staleFallback = .never
    }
    let hop = self.hop.map { RedirectHop(request: part, url: $0.url, chain: $0.chain) }
    var fetch = Fetch(settings, at: hop, priority, cache.seen(by: settings))
    (fetch.candidates, fetch.reason, fetch.mayWaitForLease) = (candidates, .partial, false)
    return fetch
  }

  /// Returns some of the bytes of a stored part, or `nil` if it cannot be read.
  func storedBytes(of candidate: Candidate, _ bytes: Range<Int64>) async throws(CacheError) -> ResourceBody? {
    let reader = request.destination.isStream ? cache : cache.seen(by: request.with { $0.destination = .stream })
    return try await reader.content(of: candidate, priority, .range(bytes))?.body
  }

  /// Returns a closure that opens a stored part.
  private func opening(_ candidate: Candidate, _ length: Int64) -> ConcatenatedBody.Opening {
    { @Sendable () async throws(CacheError) -> ResourceBody? in try await storedBytes(of: candidate, 0..<length) }
  }

  /// Makes one part of several that follow each other, when there are many.
  private func joinParts(of live: LiveParts) async {
    guard let run = live.beginJoining(), let first = run.first, let last = run.last else { return }
    let bytes = first.bytes.lowerBound..<last.bytes.upperBound
    var former = run.map(\.candidate)
    let joined = await join(run, bytes, of: live)
    if joined == nil { former = [] }
    live.endJoining(as: joined, bytes, instead: former)
  }

  private func join(
    _ run: [(candidate: Candidate, bytes: Range<Int64>)], _ bytes: Range<Int64>, of live: LiveParts
  ) async -> Candidate? {
    let fetch = requesting(bytes)
    // The validator describes the part as it would describe a response of the origin.
    let response = fetch.reply(from: live.whole).head
    guard
      case .store(let variant, let metadata, _) = fetch.planner.judge(
        .success(response), to: fetch.head, sent: fetch.head, fallback: nil, stored: [], requestTime: live.whole.requestTime,
        now: request.clock.now)
    else { return nil }
    let sources = run.map { fetch.opening($0.candidate, $0.bytes.upperBound - $0.bytes.lowerBound) }
    let body = ResourceBody(length: bytes.upperBound - bytes.lowerBound, source: ConcatenatedBody(sources))
    do throws(CacheError) {
      return try await fetch.store(body, variant, metadata, replacing: run.map(\.candidate))
    } catch {
      return nil
    }
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
  /// A range at the end (`bytes=-500`) begins at an unknown position. One with `If-Range` may lead to the whole response.
  var firstPiece: Range<Int64>? {
    guard request.validator?.combinesParts == true, request.destination.isStream, request.role == .original, hop == nil,
      !request.writes.isEmpty, head.method == .get, request.policy != .reload, fallback == nil,
      !head.headerFields.contains(where: { ConfidentialFields.conditions.contains($0.name) && $0.name != .range }),
      let range = head.simpleRange
    else { return nil }
    let length = range.last == nil ? LiveParts.PieceLength.shortest : LiveParts.PieceLength.longest
    let (most, overflows) = range.first.addingReportingOverflow(length)
    guard !overflows else { return nil }
    return range.first..<min(most, range.last.map { $0 + 1 } ?? .max)
  }

  /// Requests the first piece of a range, and opens its representation.
  ///
  /// - Returns: The representation, or the response if it is not a part that can be combined.
  @inline(never)
  func open(_ bytes: Range<Int64>) async throws(CacheError) -> Opened {
    let fetch = requesting(bytes)
    let response = try await fetch.send(fetch.head)
    guard let received = response.received, received.status == 206, response.isStored,
      ContentRange(received.head.headerFields)?.bytes.lowerBound == bytes.lowerBound
    else { return .response(response) }
    var whole = head
    whole.headerFields[.range] = nil
    // A part never satisfies a request for the whole, so the plan combines it.
    guard case .combine(var combination) = planner.plan(whole, validatedMeanwhile: response.metadata) else {
      return .response(response)
    }
    // The part is still arriving.
    combination.parts = []
    return .parts(LiveParts(combination, [], logPosition: cache.logPosition, opened: (bytes.lowerBound, response)))
  }

  /// The result of a request for the first piece of a range.
  enum Opened {
    case parts(LiveParts)
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

  /// The first byte of a single range, and the last one if the range states it. `nil` for other ranges.
  fileprivate var simpleRange: (first: Int64, last: Int64?)? {
    guard let text = headerFields.single(.range)?.value, text.lowercased().hasPrefix("bytes=") else { return nil }
    let ends = text.dropFirst(6).split(separator: "-", omittingEmptySubsequences: false)
    guard ends.count == 2, let first = Int64(digits: ends[0]) else { return nil }
    if ends[1].isEmpty { return (first, nil) }
    guard let last = Int64(digits: ends[1]), last >= first, last < .max else { return nil }
    return (first, last)
  }

  fileprivate var isOpenEndedRange: Bool { simpleRange.map { $0.last == nil } ?? false }
}
