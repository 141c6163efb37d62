internal import CacheCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// Lookups of values that are stored. They send no requests.
extension LoadCoordinator {
  /// Returns the stored value of a request whose policy is `cacheOnly`, or `nil` if there is none.
  ///
  /// A fresh value in memory is reported as a hit, and every other value as a load. A miss has no events, so nothing is reported
  /// until a lookup has found a response.
  func stored<Value: Sendable>(
    _ load: ResolvedRequest, _ transform: ResourceTransform<Value>
  ) async -> Resource<Value>? {
    guard load.head.method == .get, load.body == nil else { return nil }
    let start = load.clock.uptime
    if let (found, freshness) = memoryHit(load, transform, startedAt: start) {
      if freshness.isFresh(at: load.clock.now) {
        load.observe(.hit(url: load.observedURL, source: .memory, duration: found.duration))
      } else {
        load.observe(.started(url: load.observedURL))
        load.observeEnd(.success(found), startedAt: start)
      }
      return found
    }
    let load = load.markedIfNested
    guard await hasStored(load, transform, startedAt: start), flights.beginLoad() else { return nil }
    load.observe(.started(url: load.observedURL))
    if Value.self == Data.self, transform.id.isEmpty {
      return try? await run(load, BytesForm<Value>(core: self), WaiterNeeds(isCounted: true), startedAt: start).get()
    }
    let form = ValueForm(core: self, transform: transform)
    return try? await run(load, form, WaiterNeeds(isCounted: true), startedAt: start).get()
  }

  /// Whether a load of the value would find a response. The lookup has a flight, so that the load's timeout, a cancellation and
  /// the end of the manager end the wait for a store that is slow.
  private func hasStored<Value: Sendable>(
    _ load: ResolvedRequest, _ transform: ResourceTransform<Value>, startedAt start: Duration
  ) async -> Bool {
    guard flights.beginLoad() else { return false }
    let lookup = transform.id.isEmpty ? load : load.with { $0.representation = RequestedRepresentation(for: transform) }
    let deadline = load.timeout.map { timeout in
      let error = CacheError(.timedOut, reason: "not found within \(timeout)", url: load.address)
      return Deadline(uptime: start + timeout, clock: load.clock, error: error, isFinal: true)
    }
    let ending = await wait(
      for: lookup, LookupForm(), WaiterNeeds(isCounted: true), until: deadline, progress: { _ in }, stale: { _ in })
    return if case .output = ending { true } else { false }
  }
}

/// The form of a lookup, which succeeds if a load that sends no requests finds a response.
private struct LookupForm: LoadForm {
  func key(of load: ResolvedRequest) -> FlightKey? { nil }

  func work(
    of load: ResolvedRequest, in flight: Flight<Flights.Done>, alone: Bool
  ) async -> Result<Flights.Done, CacheError> {
    do throws(CacheError) {
      let found = try await TieredCache(load, resource: load.settings.resource).lookUp(load.head)
      guard case .use(let index, _) = found.plan, case let response = found.candidates[index].metadata.response,
        load.isResult(response) || load.isFollowed(response)
      else { return .failure(.onlyCached) }
      return .success(Flights.Done())
    } catch {
      return .failure(error)
    }
  }

  func value(in output: Flights.Done) -> (value: Void, outcome: Exchange)? { nil }
}
