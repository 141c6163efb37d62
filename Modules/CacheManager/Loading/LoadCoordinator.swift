internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The shared state of a manager and its loads. Coalesced loads retain it, so the loads of a released manager still end.
final class LoadCoordinator: Sendable {
  /// The callbacks of one waiter. `end` is called exactly once.
  struct Sink<Value: Sendable>: Sendable {
    /// Called with each event, or `nil` if the waiter needs only the end.
    var event: (@Sendable (ResourceEvent<Value>) -> Void)?
    var end: @Sendable (Result<Resource<Value>, CacheError>) -> Void
    /// Whether a stale value ends the load for this waiter, as it does for calls that return one result.
    var endsWithStale: Bool
  }

  let configuration: ResourceManager.Configuration
  let invalidations = InvalidationLog()
  let failures = RecentFailures()
  let stores: StoreCoordination
  let coalescer = RequestCoalescer()
  /// The priorities of prefetches that have not started.
  let queuedPriorities = QueuedPriorities()
  /// The background revalidations of responses that have already been delivered.
  let revalidations = RevalidationTable()
  /// The partial files of loads into files.
  let parts = OpenParts()
  /// Coalesces the requests of `respond(to:)`.
  let responseCoalescer = ResponseCoalescer()
  /// The running steps of transforms.
  let steps = StepCoalescer()
  /// Limits the number of steps that run at once.
  let workSlots: PrioritySemaphore
  /// The memory that loads may use at once.
  let budget: MemoryBudget
  /// The manager as a member of its fleet, or `nil` without one.
  let fleetMember: FleetMember?
  /// The result of checking the manager's settings.
  let validity: Result<Void, CacheError>

  init(_ configuration: ResourceManager.Configuration) {
    self.configuration = configuration
    validity = Result(catching: configuration.check)
    stores = StoreCoordination(configuration)
    workSlots = PrioritySemaphore(configuration.maximumConcurrentTransforms)
    budget = MemoryBudget(configuration.memoryBudget)
    let (invalidations, coalescer) = (invalidations, coalescer)
    fleetMember = configuration.fleet.map { FleetMember($0, configuration, invalidations, coalescer) }
  }

  /// Starts a load that ``begin(_:_:)`` does not end, or joins it to a running load. `sink.end` is called exactly once.
  ///
  /// - Parameters:
  ///   - known: The responses that a lookup has found.
  ///   - startedAt: The start of the load, or `nil` if it starts now. A load that has started was reported to the observer and
  ///     accepted by the coalescer.
  func start<Value: Sendable>(
    _ load: ResolvedRequest, known: KnownResponses?, _ transform: ResourceTransform<Value>, _ task: LoadTask, _ sink: Sink<Value>,
    startedAt: Duration? = nil
  ) {
    let load = load.markedIfNested
    let mailbox = EventMailbox(load: load, task: task, sink: sink, startedAt: startedAt)
    if let timeout = load.timeout {
      mailbox.limit(to: timeout) { mailbox, load in self.join(load, known: nil, transform, isAccepted: true, task, mailbox) }
    }
    join(load, known: known, transform, isAccepted: startedAt != nil, task, mailbox)
  }

  private func join<Value: Sendable>(
    _ load: ResolvedRequest, known: KnownResponses?, _ transform: ResourceTransform<Value>, isAccepted: Bool, _ task: LoadTask,
    _ mailbox: EventMailbox<Value>
  ) {
    if Value.self == Data.self, transform.id.isEmpty {
      let waiter = mailbox.waiter { (outcome: LoadOutcome) in (outcome.data as? Value).map { ($0, outcome) } }
      joinBytes(load, known: known, alone: false, isAccepted: isAccepted, task: task, waiter)
    } else {
      joinDerived(load, transform, alone: false, task: task, mailbox: mailbox)
    }
  }

  /// Runs a load that ``begin(_:_:)`` does not end, until the load ends or the calling task is cancelled.
  @inline(never)
  func outcome<Value: Sendable>(
    of load: ResolvedRequest, known: KnownResponses?, _ transform: ResourceTransform<Value>
  ) async -> Result<Resource<Value>, CacheError> {
    let load = load.markedIfNested
    guard known == nil, Value.self == Data.self, transform.id.isEmpty, load.allowsLookupByCaller,
      coalescer.beginLookup(of: load)
    else {
      return await coalescedOutcome(of: load, known: known, transform)
    }
    return await outcomeOfLookup(load, transform)
  }

  /// Looks up a load in the task of its caller, and starts a coalesced load only if there is no hit. A coalesced load costs a
  /// task, its wake-ups and the objects of a waiter.
  ///
  /// It leaves the actor of the caller, so that a blocked actor never delays the end of the lookup.
  @concurrent
  private func outcomeOfLookup<Value: Sendable>(
    _ load: ResolvedRequest, _ transform: ResourceTransform<Value>
  ) async -> Result<Resource<Value>, CacheError> {
    let (start, resource) = (load.clock.uptime, load.settings.resource)
    load.observe(.started(url: load.observedURL))
    let cache = TieredCache(load, resource: resource)
    // A lookup throws only if the task is cancelled.
    guard let found = try? await cache.lookUp(load.head), !Task.isCancelled, !cache.isBehindRemovals else {
      return await coalescedOutcome(of: load, known: nil, transform, startedAt: start)
    }
    guard let candidate = cache.immediateHit(in: found), let value = candidate.data as? Value else {
      let known = coalescer.positionIfCurrent(lookupOf: resource).map {
        KnownResponses(cache: cache, result: found, position: $0)
      }
      return await coalescedOutcome(of: load, known: known, transform, startedAt: start)
    }
    let hit = Result<_, CacheError>.success(
      hitOutcome(candidate, transform, of: load).resource(value, clock: load.clock, startedAt: start))
    load.observeEnd(hit, startedAt: start)
    coalescer.endLookup(of: resource)
    return hit
  }

  /// Starts a load or joins it to a running one, and waits for its end.
  ///
  /// - Parameter startedAt: The start of the load, or `nil` if it was not looked up. The lookup ends when the load has joined.
  private func coalescedOutcome<Value: Sendable>(
    of load: ResolvedRequest, known: KnownResponses?, _ transform: ResourceTransform<Value>, startedAt: Duration? = nil
  ) async -> Result<Resource<Value>, CacheError> {
    let task = LoadTask(id: load.id, priority: LoadPriority(load.priority), isHandedOut: false)
    return await withTaskCancellationHandler {
      // A sink ends exactly once, so an unchecked continuation is safe.
      await withUnsafeContinuation { continuation in
        let sink = Sink<Value>(event: nil, end: { continuation.resume(returning: $0) }, endsWithStale: true)
        start(load, known: known, transform, task, sink, startedAt: startedAt)
        if startedAt != nil { coalescer.endLookup(of: load.settings.resource) }
      }
    } onCancel: {
      task.cancel()
    }
  }

  // MARK: Bytes

  /// Joins a waiter to the coalesced load of a request's bytes, which is started if it does not exist.
  ///
  /// - Parameters:
  ///   - known: The responses that a lookup has found.
  ///   - alone: Whether the waiter gets a load of its own, because the outcome of another load was not for it.
  ///   - isAccepted: Whether the coalescer has accepted the load before.
  func joinBytes(
    _ load: ResolvedRequest, known: KnownResponses? = nil, alone: Bool, isAccepted: Bool = false, task: LoadTask,
    _ waiter: CoalescedLoad<LoadOutcome>.Waiter
  ) {
    // Decisions that were made before this waiter joined ignore its needs.
    let wantsBytes = load.representation?.wantsBytes ?? true
    let joining = CoalescedLoad<LoadOutcome>.Waiter { message in
      switch message {
      case .post(.stale(let old)) where wantsBytes && old.isBodyLeft: break
      case .end(.success(let outcome)) where wantsBytes && outcome.isBodyLeft:
        // The load was accepted once, so it is accepted even if the manager has closed in the meantime.
        self.joinBytes(load, alone: alone || self.coalescer.isClosed, task: task, waiter)
      case .loadAlone: self.joinBytes(load, alone: true, task: task, waiter)
      case .post, .deliver, .end, .expired: waiter.receive(message)
      }
    }
    let id = CoalescedLoadID(request: CoalescingKey(load))
    queuedPriorities.raise(load, to: task.priority.level)
    let isAccepted = coalescer.join(id, load, alone: alone, isAccepted: isAccepted, task: task, waiter: joining) { coalesced in
      // A load that ended between the lookup and this point may have stored the response, so the lookup is repeated.
      let known = known?.position == self.coalescer.endPosition ? known : nil
      coalesced.start(on: load.downloader?.preferredExecutor) { coalesced in
        let result = await self.fetch(load, known, in: coalesced.number, coalesced.priority) { coalesced.report($0) }
        if coalesced.hasSatisfied { load.observeBackground(result) }
        return result
      }
    }
    if !isAccepted { waiter.receive(.end(.failure(load.managerIsClosed))) }
  }

  // MARK: Values

  private func joinDerived<Value: Sendable>(
    _ load: ResolvedRequest, _ transform: ResourceTransform<Value>, alone: Bool, task: LoadTask, mailbox: EventMailbox<Value>
  ) {
    let waiter = mailbox.waiter { (derived: TransformedOutcome<Value>) in (derived.value, derived.outcome) }
      .loadingAlone { self.joinDerived(load, transform, alone: true, task: task, mailbox: mailbox) }
    let id = CoalescedLoadID(
      request: CoalescingKey(load), transform: transform.id, value: ObjectIdentifier(Value.self),
      executor: load.executor.map { ObjectIdentifier($0) }, storagePolicy: transform.coding == nil ? nil : load.storagePolicy)
    let isAccepted = coalescer.join(id, load, alone: alone, task: task, waiter: waiter) { coalesced in
      coalesced.start { coalesced in
        let result = await self.derive(load, transform, alone: alone, in: coalesced)
        if coalesced.hasSatisfied { load.observeBackground(result.map(\.outcome)) }
        return result
      }
    }
    if !isAccepted { mailbox.end(.failure(load.managerIsClosed)) }
  }

  /// Loads the bytes, which all their transforms share, and makes the value. A stored value needs no bytes.
  private func derive<Value: Sendable>(
    _ load: ResolvedRequest, _ transform: ResourceTransform<Value>, alone: Bool,
    in coalesced: CoalescedLoad<TransformedOutcome<Value>>
  ) async -> Result<TransformedOutcome<Value>, CacheError> {
    let pipeline = ValuePipeline(load: load, transform: transform, core: self, priority: coalesced.priority)
    do throws(CacheError) {
      for demand in pipeline.demands {
        let effectiveLoad = demand.map { demand in load.with { $0.representation = demand } } ?? load
        let outcome = try await outcome(effectiveLoad, alone: alone || coalescer.isClosed, in: coalesced) { old in
          // A stale response that cannot be transformed is not reported. The final response decides.
          if let value = (try? await pipeline.value(of: old)) ?? nil { coalesced.report(.stale(value)) }
        }
        do throws(CacheError) {
          if let value = try await pipeline.value(of: outcome) { return .success(value) }
        } catch {
          throw load.naming(error, at: outcome.url, after: outcome.redirects)
        }
      }
      throw CacheError(.notCached, reason: "the stored value cannot be read, and its original is not stored")
    } catch {
      return .failure(error.about(load.address))
    }
  }

  private func outcome<Value: Sendable>(
    _ load: ResolvedRequest, alone: Bool, in coalesced: CoalescedLoad<TransformedOutcome<Value>>,
    stale: (LoadOutcome) async -> Void
  ) async throws(CacheError) -> LoadOutcome {
    let waiting = WaitingTask<LoadOutcome>(coalesced.priority)
    joinBytes(load, alone: alone, task: waiting.link, waiting.waiter)
    let outcome = try await waiting.outcome { event in
      switch event {
      case .progress(let progress): coalesced.report(.progress(progress))
      case .stale(let old): await stale(old)
      case .foundFallback: coalesced.report(.foundFallback)
      case .inFlight(let isInFlight): coalesced.report(.inFlight(isInFlight))
      }
      return nil
    }
    guard let outcome else { throw .cancelled }
    return try outcome.get()
  }

  /// - Returns: Whether all writes to the durable store have ended.
  @discardableResult
  func close() async -> Bool {
    await coalescer.close()
    await revalidations.close()
    let isIdle = await stores.writes.idle()
    await fleetMember?.leave()
    return isIdle
  }

  /// - Returns: Whether everything ended within `limit`.
  func close(within limit: Duration) async -> Bool {
    coalescer.refuseNew()
    let waiting = Lock<CheckedContinuation<Bool, Never>?>(nil)
    let clock = configuration.clock
    let hasEnded = await withCheckedContinuation { continuation in
      waiting.withLock { $0 = continuation }
      let end: @Sendable (Bool) -> Void = { hasEnded in
        let continuation = waiting.withLock { waiting in
          defer { waiting = nil }
          return waiting
        }
        continuation?.resume(returning: hasEnded)
      }
      let timer = Task.detached {
        try? await clock.sleep(for: limit)
        end(false)
      }
      // The call does not wait for this task beyond the limit, because a store that hangs would block the caller.
      Task.detached {
        end(await self.close())
        timer.cancel()
      }
    }
    if !hasEnded { coalescer.dismissWaiters(CacheError(.closed, reason: "the manager was closed while the load was running")) }
    return hasEnded
  }
}
