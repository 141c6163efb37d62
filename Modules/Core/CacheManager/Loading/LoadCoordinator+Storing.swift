internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

extension ResolvedRequest {
  /// A key that is equal for loads of one resource that get the same response, whatever layers they write and limits they set.
  var resourceKey: CoalescingKey { CoalescingKey(ignoringStorageOf: self) }
}

/// The form of a load whose body is written to the durable store chunk by chunk and is not collected in memory.
///
/// If the response is not stored, the load fails with the store's error, or with `CacheError.Code.notCached` if storing is
/// forbidden.
struct StoreForm<Value: Sendable>: LoadForm {
  let core: LoadCoordinator
  /// Returns the value of the resource.
  let makeValue: @Sendable (Exchange) -> Value

  var followsDownloader: Bool { true }

  func key(of load: ResolvedRequest) -> FlightKey? { .store(load.resourceKey) }

  func work(of load: ResolvedRequest, in flight: Flight<Exchange>, alone: Bool) async -> Result<Exchange, CacheError> {
    guard load.writes.contains(.disk) else { return .failure(load.noDurableStore) }
    let result = await core.store(load, in: flight.number, flight.priority) { flight.report($0) }
    if flight.survivesItsWaiters { load.observeBackground(result) }
    return result
  }

  func value(in output: Exchange) -> (value: Value, outcome: Exchange)? { (makeValue(output), output) }
}

/// Loads into the durable store alone. They share one transfer with other loads of the same resource.
extension LoadCoordinator {
  fileprivate func store(
    _ load: ResolvedRequest, in number: Int, _ priority: LoadPriority,
    _ report: @escaping @Sendable (FlightEvent<Exchange>) -> Void
  ) async -> Result<Exchange, CacheError> {
    let storing = load.with { parts in
      parts.destination = .store
      // A response in memory alone is not enough. The store decides the size limit of a body.
      parts.reads.formIntersection(.disk)
      parts.maximumBodySize = .max
    }
    // A load of the same resource may be running. It stores its response if that is allowed.
    do throws(CacheError) {
      let running = try await outcome(
        ofOpen: .bytes(CoalescingKey(load)), before: number, priority, report, stale: { report(.stale($0)) })
      if let running, await isStored(running, storing) { return .success(running.with { $0.body = .none }) }
    } catch {
      return .failure(error.about(load.address))
    }
    let result = await LoadOperation(request: storing, priority: priority, report: report, flights: flights).run()
    guard case .success(let outcome) = result, !outcome.isStored else { return result }
    let refusal = CacheError(.notCached, reason: "the response may not be stored")
    return .failure(load.naming(refusal, at: outcome.url, after: outcome.redirects))
  }

  private func isStored(_ outcome: Exchange, _ storing: ResolvedRequest) async -> Bool {
    let cache = TieredCache(storing, resource: outcome.key.resource)
    guard let store = storing.store, let stored = try? await cache.variants(on: store) else { return false }
    return stored.contains { $0.key == outcome.key && $0.metadata.revision == outcome.metadata.revision }
  }

  /// Loads a resource. If a load into the durable store is running, waits for it and reads the store.
  ///
  /// - Parameter number: The number of the flight for which this load runs.
  func fetch(
    _ load: ResolvedRequest, _ known: KnownResponses? = nil, in number: Int, _ priority: LoadPriority,
    _ report: @escaping @Sendable (FlightEvent<Exchange>) -> Void
  ) async -> Result<Exchange, CacheError> {
    var (load, known) = (load, known)
    if load.head.method == .get, load.reads.contains(.disk), flights.isStoring {
      do throws(CacheError) {
        if let exchange = try await stored(load, in: number, priority, report) { return .success(exchange) }
      } catch {
        if error.isCancellation { return .failure(error) }
        // The origin need not receive another request. But memory may have a response that the other load did not look for.
        load = load.with { $0.outage = error }
      }
      // The load may have waited, so it looks into the stores again.
      known = nil
    }
    return await LoadOperation(request: load, priority: priority, report: report, flights: flights).run(known)
  }

  /// Waits for a load into the durable store. Returns `nil` if there is none, or if its outcome cannot be used.
  private func stored(
    _ load: ResolvedRequest, in number: Int, _ priority: LoadPriority,
    _ report: @escaping @Sendable (FlightEvent<Exchange>) -> Void
  ) async throws(CacheError) -> Exchange? {
    let outcome = try await outcome(ofOpen: .store(load.resourceKey), before: number, priority, report) { old in
      guard let mine = try? await taken(old, load, priority) else { return }
      // The load must not wait for the memory of this response, which depends on the waiters.
      mine.reservation?.release()
      if case .file(let partialFile) = load.destination { partialFile.seal() }
      report(.stale(mine))
    }
    guard let outcome else { return nil }
    return try await taken(outcome, load, priority)
  }

  /// Brings a response that was just stored to the load's destination. Returns `nil` if it was removed or cannot be read.
  private func taken(
    _ outcome: Exchange, _ load: ResolvedRequest, _ priority: LoadPriority
  ) async throws(CacheError) -> Exchange? {
    if case .file(let file) = load.destination, let reason = outcome.fallbackReason { await file.setPartAside(after: reason) }
    let cache = TieredCache(load, resource: outcome.key.resource)
    let candidate = Candidate(key: outcome.key, metadata: outcome.metadata)
    guard let content = try await cache.content(of: candidate, priority) else { return nil }
    cache.promote(content, candidate)
    return outcome.with { ($0.body, $0.reservation) = (content.body, content.reservation) }
  }

  /// Waits for an open flight, which becomes as urgent as the waiter.
  ///
  /// - Parameter number: The number of the flight that waits. It waits only for an earlier one.
  /// - Returns: `nil` if there is no such flight, if its outcome is not shareable, or if it has failed with an error of the
  ///   store, which does not affect this load.
  /// - Throws: The error of an origin that was unreachable a moment ago or refused the request, so that it need not receive
  ///   another one. A cancellation of the waiting task. The flight continues while it has other waiters.
  private func outcome(
    ofOpen key: FlightKey, before number: Int, _ priority: LoadPriority,
    _ report: @escaping @Sendable (FlightEvent<Exchange>) -> Void, stale: (Exchange) async -> Void
  ) async throws(CacheError) -> Exchange? {
    let needs = WaiterNeeds<Exchange>(priority: priority, wantsProgress: true, endsWithStale: false, forward: report)
    guard let waiter = flights.joinOpen(key, before: number, needs) else { return nil }
    let ending = await waiter.ending(progress: { report(.progress($0)) }, stale: stale)
    if Task.isCancelled { throw .cancelled }
    switch ending {
    case .output(let outcome): return outcome
    case .failed(let error):
      if error.isUnreachable || error.code == .unacceptableStatus { throw error }
      return nil
    // The waiter that waits for this task has the deadline.
    case .expired, .alone: return nil
    }
  }
}

/// The form of a load into a file.
struct FileForm: LoadForm {
  typealias Value = URL

  let core: LoadCoordinator
  let destination: FileDestination

  func key(of load: ResolvedRequest) -> FlightKey? { nil }

  func work(
    of load: ResolvedRequest, in flight: Flight<TransformedOutcome<URL>>, alone: Bool
  ) async -> Result<TransformedOutcome<URL>, CacheError> {
    await core.write(load, to: destination, in: flight)
  }
}

/// The form of a load into a partial file. The response after a stale one is written to the store alone.
private struct ContentForm: LoadForm {
  let core: LoadCoordinator
  let file: PartialFile

  func key(of load: ResolvedRequest) -> FlightKey? { nil }

  func work(of load: ResolvedRequest, in flight: Flight<Exchange>, alone: Bool) async -> Result<Exchange, CacheError> {
    let writing = load.with { writing in
      writing.destination = .file(file)
      writing.downloader = load.downloader.map { PartDownloader($0, into: file, for: load) }
    }
    let result = await core.fetch(writing, in: flight.number, flight.priority) { event in
      if case .progress(let progress) = event {
        flight.report(.progress(file.completed(progress)))
      } else {
        flight.report(event)
      }
    }
    if flight.survivesItsWaiters { load.observeBackground(result) }
    return result
  }

  func value(in output: Exchange) -> (value: URL, outcome: Exchange)? { nil }
}

/// Loads into callers' files.
///
/// Each load has a flight of its own, which no other waiter joins. It waits for a second one, which can continue after a stale
/// response was enough for the file.
extension LoadCoordinator {
  fileprivate func write(
    _ load: ResolvedRequest, to destination: FileDestination, in flight: Flight<TransformedOutcome<URL>>
  ) async -> Result<TransformedOutcome<URL>, CacheError> {
    do throws(CacheError) {
      // The file is opened first, so that a load whose file cannot be written sends no request.
      // A stored response after a deadline has a file of its own, so that a later load can continue the part of the download.
      let parts = load.outage == nil ? parts : nil
      let file = try await PartialFile.open(destination, in: parts) { [weak flight] in (flight?.awaiting ?? 0) == 0 }
      do throws(CacheError) {
        let outcome = try await output(of: load, ContentForm(core: self, file: file), alone: true, for: flight)
        // The file is moved into place, unless the waiter has received a cancellation.
        guard flight.keepWaiters() else { throw .cancelled }
        try await file.place()
        return .success(TransformedOutcome(value: destination.url, outcome: outcome))
      } catch {
        await file.leave(after: error)
        throw error
      }
    } catch {
      return .failure(error.about(load.address))
    }
  }
}
