internal import CacheCore
internal import HTTPTypes

/// Sends a request under a lease, so that one process of a fleet sends it and the others read what it stores.
extension Fetch {
  /// The first and the longest interval between two requests for a lease that another process holds. Each interval is half as
  /// long again as the one before.
  private static let (firstInterval, longestInterval) = (Duration.milliseconds(5), Duration.milliseconds(100))

  /// The request fields that select the response, as a part of the lease's name. Returns `nil` if other processes cannot use the
  /// response.
  ///
  /// Requests with credentials, or with cookies that select a response, have no lease.
  var leaseSelection: String? {
    let fields = head.headerFields
    guard head.method == .get, request.role == .original, request.reads.contains(.disk),
      request.writes.contains(.disk), !fields.contains(.authorization),
      fields[.cacheControl]?.lowercased().contains("no-store") != true,
      reason == .stale || !ConfidentialFields.conditions.contains(where: { fields.contains($0) }),
      isSatisfiedByFreshResponse
    else { return nil }
    let names = candidates.reduce(into: Set<HTTPField.Name>()) { names, candidate in
      names.formUnion(request.validator?.selectingFields(of: candidate.metadata) ?? [])
      // Without a stated lifetime, a response may be for one user.
      if !candidate.metadata.wasFresh { names.insert(.cookie) }
    }
    guard !names.contains(.cookie) || !fields.contains(.cookie) else { return nil }
    // A field that the request does not have is left out, so the name does not change when the first response is stored.
    let selecting = names.filter { fields.contains($0) }
    return selecting.map { "\($0.canonicalName): \(fields[values: $0])" }.sorted().joined(separator: "\n")
  }

  /// Requests the lease until it is granted, or until a stored response satisfies the request. Without the fleet, or after the
  /// longest wait, the request is sent without a lease.
  @inline(never)
  func sendUnderLease(
    _ head: HTTPRequest, _ retry: RetryState, selecting selection: String, of fleet: any CacheFleet
  ) async throws(CacheError) -> Exchange {
    var (origin, sent, selection) = (self, head, selection)
    // If the store has nothing that can be used and did not fail, it usually has read every layer.
    var (position, isLatest) = (UInt64?.none, candidates.isEmpty && storeFailure == nil)
    let clock = request.clock
    // Half of the limit, so that requests of this process that wait for this one still get its head in time.
    let end = clock.uptime + (request.collapseTimeout ?? .zero) / 2
    var interval = Self.firstInterval
    while true {
      let reply: LeaseReply
      do throws(CacheError) {
        reply = try await fleet.requestLease(of: cache.resource, selection: selection, lookedUpAt: position)
      } catch {
        if error.isCancellation || Task.isCancelled { throw .cancelled }
        request.observe(.readFailed(resource: cache.resource, error: error))
        origin.storeFailure = origin.storeFailure ?? error.code
        return try await origin.transmit(sent, .none, retry)
      }
      switch reply {
      case .granted(let lease) where isLatest && !origin.cache.isBehindRemovals:
        origin.lease = lease
        return try await origin.transmit(sent, .none, retry)
      case .held where clock.uptime < end:
        guard (try? await clock.sleep(for: interval)) != nil, !Task.isCancelled else { throw .cancelled }
        interval = min(interval * 3 / 2, Self.longestInterval)
        // The process of the holder may end after it has stored the response and before it releases the lease.
        isLatest = false
        continue
      case .notShared: return try await origin.transmit(sent, .none, retry)
      case .granted, .stored, .held: break
      }
      // A lookup that fails again is not repeated, because the request would wait for as long as the store fails.
      let failure = origin.storeFailure
      let decision = try await origin.decideAgain()
      isLatest = true
      switch decision {
      case .use(let response, nil):
        leader?.stored(Candidate(key: response.key, metadata: response.metadata), status: nil)
        if case .granted(let lease) = reply { lease.endAsStored() }
        return response
      case .use(let response, let next?):
        // The caller has received a stale response already, or can wait for a fresh one.
        response.reservation?.release()
        response.body.source.cancel()
        sent = next
      case .send(let next): sent = next
      // The response of the other process was a part.
      case .combine, .respond: (sent, origin) = (self.head, self)
      }
      origin.storeFailure = origin.storeFailure ?? failure
      guard let other = origin.leaseSelection, !reply.isHeld else { return try await origin.transmit(sent, .none, retry) }
      if case .granted(let lease) = reply, other == selection {
        origin.lease = lease
        return try await origin.transmit(sent, .none, retry)
      }
      if case .stored(let stored) = reply, other == selection { position = stored } else { position = nil }
      selection = other
    }
  }
}

extension LeaseReply {
  fileprivate var isHeld: Bool { if case .held = self { true } else { false } }
}

extension RequestLease {
  /// Ends a lease whose response other processes cannot use.
  ///
  /// - Parameter isTypical: Whether the origin usually responds in this way. Other processes then do not wait for as long as
  ///   requests of one process do not wait for each other. Otherwise the next process soon requests the lease again.
  func endWithoutSharing(isTypical: Bool) {
    endAsNotShared(for: isTypical ? ResponseCoalescer.markLifetime : .seconds(1))
  }

  /// Ends a lease after its response. Other processes cannot use one that must be revalidated at once, or is not stored.
  func end(storing metadata: StoredMetadata?, at now: Timestamp) {
    if metadata?.freshness.isFresh(at: now) == true { endAsStored() } else { endWithoutSharing(isTypical: true) }
  }
}
