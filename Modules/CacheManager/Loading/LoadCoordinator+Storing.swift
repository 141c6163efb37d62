internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

extension ResolvedRequest {
  /// A key that is equal for loads of one resource that get the same response, whatever layers they write and limits they set.
  var resourceKey: CoalescingKey { CoalescingKey(self, ignoresStorage: true) }

  fileprivate var storingID: CoalescedLoadID { CoalescedLoadID(request: resourceKey, transform: CoalescedLoadID.storing) }
}

/// Loads into the durable store alone. They share one transfer with other loads of the same resource.
extension LoadCoordinator {
  /// Starts a load whose body is written to the durable store chunk by chunk and is not collected in memory. `sink.end` is called
  /// exactly once.
  ///
  /// If the response is not stored, the load fails with the store's error, or with `CacheError.Code.notCached` if storing is
  /// forbidden.
  ///
  /// - Parameter value: Returns the value of the resource for `sink.end`.
  func startStoring<Value: Sendable>(
    _ load: ResolvedRequest, _ task: LoadTask, _ sink: Sink<Value>, value: @escaping @Sendable (LoadOutcome) -> Value
  ) {
    let load = load.markedIfNested
    let mailbox = EventMailbox(load: load, task: task, sink: sink)
    guard load.writes.contains(.disk) else {
      return mailbox.end(.failure(load.noDurableStore))
    }
    if let timeout = load.timeout {
      mailbox.limit(to: timeout) { mailbox, load in self.join(storing: load, alone: false, task, mailbox, value) }
    }
    join(storing: load, alone: false, task, mailbox, value)
  }

  private func join<Value: Sendable>(
    storing load: ResolvedRequest, alone: Bool, _ task: LoadTask, _ mailbox: EventMailbox<Value>,
    _ value: @escaping @Sendable (LoadOutcome) -> Value
  ) {
    let storing = load.with { parts in
      parts.destination = .store
      // A response in memory alone is not enough. The store decides the size limit of a body.
      parts.reads.formIntersection(.disk)
      parts.maximumBodySize = .max
    }
    let waiter = mailbox.waiter { (outcome: LoadOutcome) in (value(outcome), outcome) }
      .loadingAlone { self.join(storing: load, alone: true, task, mailbox, value) }
    let isAccepted = coalescer.join(load.storingID, storing, alone: alone, task: task, waiter: waiter) { coalesced in
      coalesced.start(on: storing.downloader?.preferredExecutor) { coalesced in
        let result = await self.store(storing, as: load, in: coalesced.number, coalesced.priority) { coalesced.report($0) }
        if coalesced.hasSatisfied { load.observeBackground(result) }
        return result
      }
    }
    if !isAccepted { mailbox.end(.failure(load.managerIsClosed)) }
  }

  private func store(
    _ storing: ResolvedRequest, as load: ResolvedRequest, in number: Int, _ priority: LoadPriority,
    _ report: @escaping @Sendable (CoalescedLoadEvent<LoadOutcome>) -> Void
  ) async -> Result<LoadOutcome, CacheError> {
    // A load of the same resource may be running. It stores its response if that is allowed.
    do throws(CacheError) {
      switch try await awaitCoalescedLoad(
        CoalescedLoadID(request: CoalescingKey(load)), before: number, priority, event: report)
      {
      case .success(let outcome)?:
        if await isStored(outcome, storing) { return .success(outcome.with { $0.data = Data() }) }
      case .failure(let error)?: if error.isConclusive { return .failure(error) }
      case nil: break
      }
    } catch {
      return .failure(error.about(load.address))
    }
    let result = await LoadOperation(request: storing, priority: priority, report: report, revalidations: revalidations).run()
    guard case .success(let outcome) = result, !outcome.isStored else { return result }
    let refusal = CacheError(.notCached, reason: "the response may not be stored")
    return .failure(load.naming(refusal, at: outcome.url, after: outcome.redirects))
  }

  private func isStored(_ outcome: LoadOutcome, _ storing: ResolvedRequest) async -> Bool {
    let cache = TieredCache(storing, resource: outcome.key.resource)
    guard let store = storing.store, let stored = try? await cache.variants(on: store) else { return false }
    return stored.contains { $0.key == outcome.key && $0.metadata.revision == outcome.metadata.revision }
  }

  /// Loads a resource. If a load into the durable store is running, waits for it and reads the store.
  ///
  /// - Parameter number: The number of the coalesced load for which this load runs.
  func fetch(
    _ load: ResolvedRequest, _ known: KnownResponses? = nil, in number: Int, _ priority: LoadPriority,
    _ report: @escaping @Sendable (CoalescedLoadEvent<LoadOutcome>) -> Void
  ) async -> Result<LoadOutcome, CacheError> {
    var known = known
    if load.head.method == .get, load.reads.contains(.disk), coalescer.isStoring {
      if let result = await stored(load, in: number, priority, report) { return result }
      // The load may have waited, so it looks into the stores again.
      known = nil
    }
    return await LoadOperation(request: load, priority: priority, report: report, revalidations: revalidations).run(known)
  }

  /// Waits for a load into the durable store. Returns `nil` if there is none, or if its outcome cannot be used.
  private func stored(
    _ load: ResolvedRequest, in number: Int, _ priority: LoadPriority,
    _ report: @escaping @Sendable (CoalescedLoadEvent<LoadOutcome>) -> Void
  ) async -> Result<LoadOutcome, CacheError>? {
    do throws(CacheError) {
      let outcome = try await awaitCoalescedLoad(load.storingID, before: number, priority) { event in
        switch event {
        case .progress, .foundFallback, .inFlight: report(event)
        case .stale(let old):
          guard let mine = try? await taken(old, load) else { return }
          if case .file(let partialFile) = load.destination { partialFile.seal() }
          report(.stale(mine))
        }
      }
      switch outcome {
      case .success(let outcome)?: return try await taken(outcome, load).map { .success($0) }
      // An error of the store does not affect this load.
      case .failure(let error)?: return error.isConclusive ? outcome : nil
      case nil: return nil
      }
    } catch {
      return .failure(error.about(load.address))
    }
  }

  /// Brings a response that was just stored to the load's destination. Returns `nil` if it was removed or cannot be read.
  private func taken(_ outcome: LoadOutcome, _ load: ResolvedRequest) async throws(CacheError) -> LoadOutcome? {
    if case .file(let file) = load.destination, let reason = outcome.fallbackReason { await file.setPartAside(after: reason) }
    let cache = TieredCache(load, resource: outcome.key.resource)
    let candidate = Candidate(key: outcome.key, metadata: outcome.metadata)
    guard let content = try await cache.content(of: candidate) else { return nil }
    cache.promote(content, candidate)
    return outcome.with { ($0.data, $0.reservation) = (content.body.data ?? Data(), content.reservation) }
  }

  /// Waits for a running coalesced load, which becomes as urgent as the waiter.
  ///
  /// - Parameter number: The number of the coalesced load that waits. It waits only for an earlier load.
  /// - Returns: `nil` if there is no such load, or if its outcome is not shareable.
  /// - Throws: A cancellation of the waiting task. The coalesced load continues while it has other waiters.
  private func awaitCoalescedLoad(
    _ id: CoalescedLoadID, before number: Int, _ priority: LoadPriority,
    event: (CoalescedLoadEvent<LoadOutcome>) async -> Void
  ) async throws(CacheError) -> Result<LoadOutcome, CacheError>? {
    let waiting = WaitingTask<LoadOutcome>(priority)
    guard coalescer.joinOpen(id, before: number, task: waiting.link, waiter: waiting.waiter, invalidations) else { return nil }
    return try await waiting.outcome { happened in
      await event(happened)
      return nil
    }
  }
}

extension CacheError {
  /// Whether the origin need not receive another request, because it was unreachable a moment ago or refused the request.
  fileprivate var isConclusive: Bool { isUnreachable || code == .unacceptableStatus }
}

/// The outcome of a coalesced load into a file, and the partial file that holds its bytes.
private struct CollectedFile: Shareable {
  var outcome: LoadOutcome
  var partialFile: PartialFile
  /// Whether other loads copy the partial file, or may still copy it.
  var isSharedWithOthers: @Sendable () -> Bool

  var isShareable: Bool { outcome.isShareable }
}

/// Loads into callers' files.
///
/// Each load has a coalesced load of its own, which no other waiter joins. That coalesced load waits for a second one, which all
/// loads of the resource into files share. The second one writes into the partial file of the first load, and the other loads
/// copy it.
extension LoadCoordinator {
  /// Starts a load into a file. `sink.end` is called exactly once.
  func startFile(_ load: ResolvedRequest, _ destination: FileDestination, _ task: LoadTask, _ sink: Sink<URL>) {
    let load = load.markedIfNested
    let mailbox = EventMailbox(load: load, task: task, sink: sink)
    if let timeout = load.timeout {
      mailbox.limit(to: timeout) { mailbox, load in self.join(load, destination, task, mailbox) }
    }
    join(load, destination, task, mailbox)
  }

  private func join(
    _ load: ResolvedRequest, _ destination: FileDestination, _ task: LoadTask, _ mailbox: EventMailbox<URL>
  ) {
    let waiter = mailbox.waiter { (derived: TransformedOutcome<URL>) in (derived.value, derived.outcome) }
    let id = CoalescedLoadID(request: CoalescingKey(load), transform: "\(CoalescedLoadID.file) \(Revision.random())")
    let isAccepted = coalescer.join(id, load, alone: false, task: task, waiter: waiter) { coalesced in
      coalesced.start { await self.write(load, to: destination, in: $0) }
    }
    if !isAccepted { mailbox.end(.failure(load.managerIsClosed)) }
  }

  private func write(
    _ load: ResolvedRequest, to destination: FileDestination, in coalesced: CoalescedLoad<TransformedOutcome<URL>>
  ) async -> Result<TransformedOutcome<URL>, CacheError> {
    do throws(CacheError) {
      // The file is opened first, so that a load whose file cannot be written sends no request.
      // A stored response after a deadline has a file of its own, so that a later load can continue the part of the download.
      let parts = load.outage == nil ? parts : nil
      let partialFile = try await PartialFile.open(destination, in: parts) { [weak coalesced] in coalesced?.isAwaited != true }
      do throws(CacheError) {
        let collected = try await collected(load, partialFile, in: coalesced)
        if collected.partialFile === partialFile, collected.isSharedWithOthers() {
          // The file is copied, because a caller that changes its file must not change the files of other loads.
          try await place(copyOf: partialFile, at: destination, in: coalesced)
          await partialFile.discard()
        } else {
          if collected.partialFile !== partialFile {
            if let reason = collected.outcome.fallbackReason { await partialFile.setPartAside(after: reason) }
            try await partialFile.copy(collected.partialFile)
          }
          try await place(partialFile, in: coalesced)
        }
        return .success(TransformedOutcome(value: destination.url, outcome: collected.outcome))
      } catch {
        await partialFile.leave(after: error)
        throw error
      }
    } catch {
      return .failure(error.about(load.address))
    }
  }

  private func place(
    copyOf original: PartialFile, at destination: FileDestination, in coalesced: CoalescedLoad<TransformedOutcome<URL>>
  ) async throws(CacheError) {
    let copy = try await PartialFile.open(destination)
    do throws(CacheError) {
      try await copy.copy(original)
      try await place(copy, in: coalesced)
    } catch {
      await copy.discard()
      throw error
    }
  }

  /// Moves the file into place, unless the waiter has received a cancellation.
  private func place(_ partialFile: PartialFile, in coalesced: CoalescedLoad<TransformedOutcome<URL>>) async throws(CacheError) {
    guard coalesced.settle() else { throw .cancelled }
    try await partialFile.place()
  }

  /// Loads the bytes into a partial file: this one, or the file of an earlier load.
  private func collected(
    _ load: ResolvedRequest, _ partialFile: PartialFile, in coalesced: CoalescedLoad<TransformedOutcome<URL>>
  ) async throws(CacheError) -> CollectedFile {
    do throws(CacheError) {
      return try await collected(load, partialFile, alone: false, in: coalesced)
    } catch {
      // The file of another load could not be written. This file may be on another disk, or in a folder that still exists.
      guard error.code == .fileSystem || error.code == .diskFull, let path = error.path, path != partialFile.target,
        partialFile.count == 0,
        !error.isAboutSourceFile
      else { throw error }
      return try await collected(load, partialFile, alone: true, in: coalesced)
    }
  }

  private func collected(
    _ load: ResolvedRequest, _ partialFile: PartialFile, alone: Bool, in coalesced: CoalescedLoad<TransformedOutcome<URL>>
  ) async throws(CacheError) -> CollectedFile {
    let waiting = WaitingTask<CollectedFile>(coalesced.priority)
    join(load, partialFile, alone: alone, task: waiting.link, waiting.waiter)
    let outcome = try await waiting.outcome { event in
      switch event {
      case .progress(let progress):
        coalesced.report(.progress(progress))
        return nil
      case .foundFallback:
        coalesced.report(.foundFallback)
        return nil
      case .inFlight(let isInFlight):
        coalesced.report(.inFlight(isInFlight))
        return nil
      // A file is written once. The response after this one is written to the store alone.
      case .stale(let old): return old
      }
    }
    guard let outcome else { throw .cancelled }
    return try outcome.get()
  }

  private func join(
    _ load: ResolvedRequest, _ partialFile: PartialFile, alone: Bool, task: LoadTask,
    _ waiter: CoalescedLoad<CollectedFile>.Waiter
  ) {
    let writing = load.with { writing in
      writing.destination = .file(partialFile)
      writing.downloader = load.downloader.map { PartDownloader($0, into: partialFile, for: load) }
    }
    let joining = waiter.loadingAlone { self.join(load, partialFile, alone: true, task: task, waiter) }
    let id = CoalescedLoadID(request: CoalescingKey(load), transform: CoalescedLoadID.file)
    queuedPriorities.raise(load, to: task.priority.level)
    let isAccepted = coalescer.join(id, load, alone: alone, task: task, waiter: joining) { coalesced in
      partialFile.willBeWritten { [weak coalesced] in coalesced?.isAwaited == true }
      coalesced.start { coalesced in
        let result = await self.fetch(writing, in: coalesced.number, coalesced.priority) { event in
          switch event {
          case .progress(let progress): coalesced.report(.progress(partialFile.completed(progress)))
          case .foundFallback: coalesced.report(.foundFallback)
          case .inFlight(let isInFlight): coalesced.report(.inFlight(isInFlight))
          case .stale(let old): coalesced.report(.stale(CollectedFile(outcome: old, partialFile: partialFile) { true }))
          }
        }
        if coalesced.hasSatisfied { load.observeBackground(result) }
        return result.map { CollectedFile(outcome: $0, partialFile: partialFile) { coalesced.hasBeenShared } }
      }
    }
    if !isAccepted { waiter.receive(.end(.failure(load.managerIsClosed))) }
  }
}
